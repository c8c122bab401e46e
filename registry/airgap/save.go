package airgap

import (
	"bytes"
	"context"
	"io"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/layout"
)

// Open opens repositories by name.
type Open func(ctx context.Context, repository string) (oci.Repository, error)

// saved is the name of the repository in a file. Those of environments have a slash.
const saved = "saved"

// with is Open with a saved release as one more repository.
func (open Open) with(file oci.Repository) func(context.Context, string) (oci.Repository, error) {
	return func(ctx context.Context, name string) (oci.Repository, error) {
		if name == saved {
			return file, nil
		}
		return open(ctx, name)
	}
}

// OriginType is the artifact type of the manifest with the origin of a saved release.
const OriginType = "application/vnd.mlpromote.saved.v1+json"

// originFile is the name of the file that holds an [Origin].
const originFile = "saved.json"

// Origin is the place that a release was saved from. It is not signed: readers compare it with signed facts.
type Origin struct {
	V           int             `json:"v"` // 1
	Registry    string          `json:"registry"`
	Environment string          `json:"environment"`
	Model       string          `json:"model"`
	Version     string          `json:"version"` // the tag
	Release     registry.Digest `json:"release"`
}

// File is a file that is saved beside a release, for people: environments.yaml, public keys.
type File struct {
	Name string // relative, with '/'
	Data []byte
}

// Request names the release to save.
type Request struct {
	Registry    string // its name
	Environment string
	Release     artifact.Release
	Evidence    []registry.Digest // manifests
	Files       []File
}

// Save writes a release, evidence about it and files. Equal content has equal bytes. Every byte is
// compared with its digest. It needs memory for manifests and evidence, not for engines.
func Save(ctx context.Context, open Open, req Request, out io.Writer) error {
	w := layout.NewWriter()
	store := oci.New(open.with(w), oci.Options{})
	from := registry.Repository(req.Environment, req.Release.Model)
	if err := store.Copy(ctx, from, saved, req.Release, req.Evidence); err != nil {
		return err
	}
	if err := pushOrigin(ctx, w, req); err != nil {
		return err
	}
	return w.Write(ctx, out, req.Release.Digest, req.Release.Tag())
}

// pushOrigin adds the manifest that says where the release is from, with the files.
func pushOrigin(ctx context.Context, w *layout.Writer, req Request) error {
	r := req.Release
	origin, err := registry.CanonicalJSON(Origin{
		V: 1, Registry: req.Registry, Environment: req.Environment, Model: r.Model, Version: r.Tag(), Release: r.Digest,
	})
	if err != nil {
		return err
	}
	subject, err := w.Resolve(ctx, string(r.Digest))
	if err != nil {
		return err
	}
	subject.ArtifactType = ""
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: OriginType,
		Config: ocispec.DescriptorEmptyJSON, Subject: &subject,
	}
	m.Config.Data = nil
	if err := push(ctx, w, m.Config, []byte("{}")); err != nil {
		return err
	}
	for _, f := range append([]File{{originFile, origin}}, req.Files...) {
		desc := ocispec.Descriptor{MediaType: "application/octet-stream", Digest: digest.FromBytes(f.Data), Size: int64(len(f.Data)),
			Annotations: map[string]string{ocispec.AnnotationTitle: f.Name}}
		m.Layers = append(m.Layers, desc)
		if err := push(ctx, w, desc, f.Data); err != nil {
			return err
		}
	}
	raw, err := registry.CanonicalJSON(m)
	if err != nil {
		return err
	}
	return push(ctx, w, ocispec.Descriptor{MediaType: m.MediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}, raw)
}

func push(ctx context.Context, w *layout.Writer, desc ocispec.Descriptor, data []byte) error {
	return w.Push(ctx, desc, bytes.NewReader(data))
}
