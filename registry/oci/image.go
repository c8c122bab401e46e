package oci

import (
	"context"
	"encoding/json"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/imageform"
	"mlpromote.dev/mlpromote/registry/storage"
)

// putImage stores the image form of an engine, whose files are those of the part. It reads them to make the image, and
// again to store the layer unless it exists.
func (r repository) putImage(ctx context.Context, p storage.Part) (storage.PartRef, error) {
	files := make([]artifact.File, len(p.Files))
	given := make(map[string]storage.PartFile, len(p.Files))
	for i, f := range p.Files {
		files[i], given[f.Path] = f.File, f
	}
	open := func(f artifact.File) (io.ReadCloser, error) { return r.openGiven(ctx, given[f.Path]) }
	form, err := imageform.Make(ctx, imageform.Of(p.Engine, files), open)
	if err != nil {
		return storage.PartRef{}, registry.Errorf(registry.CodeOf(err), "%s: %w", r.name, err)
	}
	made, err := readPart(form.Manifest)
	if err != nil {
		return storage.PartRef{}, registry.Errorf(registry.CodeOf(err), "%s: make the image form of engine %s: %w", r.name, p.Engine.Digest, err)
	}
	layer := made.manifest.Layers[0]
	there, err := r.has(ctx, made.layer(0), layer)
	if err != nil {
		return storage.PartRef{}, err
	}
	if !there {
		compose := func() (io.ReadCloser, error) { return form.Archive.Open(open), nil }
		if err := r.send(ctx, made.layer(0), layer, compose); err != nil {
			return storage.PartRef{}, err
		}
	}
	if err := r.push(ctx, "config of "+made.label(), made.manifest.Config, form.Config.Data); err != nil {
		return storage.PartRef{}, err
	}
	return made.ref(), r.push(ctx, made.label(), made.desc, made.raw)
}

// openGiven opens a file that was given, or that the repository has, and hashes it while it is read.
func (r repository) openGiven(ctx context.Context, f storage.PartFile) (io.ReadCloser, error) {
	what, desc := "file "+f.Path, ocispec.Descriptor{Digest: f.Digest, Size: f.Size}
	if f.Open == nil {
		return r.stream(ctx, what, desc)
	}
	if err := checkDescriptor(desc); err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "%s: %s: %w", r.name, what, err)
	}
	rc, err := f.Open()
	if err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "%s: open %s: %w", r.name, what, err)
	}
	return newVerified(rc, desc, subject{r.name, what}, ctx.Err), nil
}

// ReadImages lists the images that the index of a release names. ok is false for any other document.
func ReadImages(raw []byte) (images []registry.Digest, ok bool) {
	var kind struct {
		ArtifactType string `json:"artifactType"`
	}
	if json.Unmarshal(raw, &kind) != nil || kind.ArtifactType != typeRelease {
		return nil, false
	}
	index, err := readIndex(raw, typeRelease)
	if err != nil {
		return nil, false
	}
	for _, entry := range index.Manifests {
		if artifact.PartKind(entry.Annotations[keyRole]) == artifact.PartImage {
			images = append(images, entry.Digest)
		}
	}
	return images, true
}

// setImages gives each engine its image form. A release has one of each engine, or none at all as those of earlier
// versions. Errors: CodeInvalid.
func setImages(r *artifact.Release, images []part) error {
	if len(images) == 0 {
		return nil
	}
	at := make(map[registry.Digest]int, len(r.Engines))
	for i, e := range r.Engines {
		at[e.Digest] = i
	}
	for _, p := range images {
		i, ok := at[p.imageOf]
		switch {
		case !ok:
			return registry.Errorf(registry.CodeInvalid, "%s %s is of no engine of it", p.label(), p.desc.Digest)
		case r.Engines[i].Image.Digest != "":
			return registry.Errorf(registry.CodeInvalid, "engine %s has two image forms, %s and %s: want one", r.Engines[i].Label(), r.Engines[i].Image.Digest, p.desc.Digest)
		}
		r.Engines[i].Image = artifact.Image{Digest: p.desc.Digest, Size: p.desc.Size}
	}
	for _, e := range r.Engines {
		if e.Image.Digest == "" {
			return registry.WithHint(registry.Errorf(registry.CodeInvalid, "engine %s %s has no image form, and other engines have one: want one of each engine", e.Label(), e.Digest),
				"build the part with the engine again, with this version of mlpromote")
		}
	}
	return nil
}
