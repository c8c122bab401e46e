package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"sigs.k8s.io/yaml"
)

// bundle is an image with the resource in text as its only layer, by version 0.1 of Tekton's contract for bundles
// (https://tekton.dev/docs/pipelines/tekton-bundle-contracts/). The same text gives the same digest.
func bundle(text []byte) (v1.Image, error) {
	var resource struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(text, &resource); err != nil {
		return nil, err
	}
	if resource.APIVersion == "" || resource.Kind == "" || resource.Metadata.Name == "" {
		return nil, fmt.Errorf("want apiVersion, kind and metadata.name, got %q, %q and %q", resource.APIVersion, resource.Kind, resource.Metadata.Name)
	}
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	if err := w.WriteHeader(&tar.Header{Name: resource.Metadata.Name, Mode: 0o600, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	return mutate.Append(empty.Image, mutate.Addendum{Layer: layer, Annotations: map[string]string{
		"dev.tekton.image.name":       resource.Metadata.Name,
		"dev.tekton.image.kind":       strings.ToLower(resource.Kind),
		"dev.tekton.image.apiVersion": resource.APIVersion,
	}})
}
