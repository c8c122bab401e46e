package main

import (
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// write writes the layout, and beside it a file per image for container engines to load.
func write(dir, version string, images []platformImage) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	var tags []name.Tag
	for _, text := range []string{version, "latest"} {
		tag, err := name.NewTag("mlpromote:" + text)
		if err != nil {
			return err
		}
		tags = append(tags, tag)
	}
	index := mutate.IndexMediaType(empty.Index, "application/vnd.oci.image.index.v1+json")
	for _, i := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        i.image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: i.arch}},
		})
		tagged := make(map[name.Tag]v1.Image, len(tags))
		for _, tag := range tags {
			tagged[tag] = i.image
		}
		if err := tarball.MultiWriteToFile(dir+"-"+i.arch+".tar", tagged); err != nil {
			return err
		}
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version}))
}
