package oci

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// PutPart stores a part: files, config, and last the manifest. It sorts files by path, so their
// order does not matter. Errors: CodeInvalid and CodeTrust for a part that readers would
// refuse; CodeDigest if a file's bytes do not match its digest.
func (s *Store) PutPart(ctx context.Context, name string, p storage.Part) (storage.PartRef, error) {
	repo, err := s.repository(ctx, name)
	if err != nil {
		return storage.PartRef{}, err
	}
	if p.Files, err = withLoadProfile(p); err != nil {
		return storage.PartRef{}, registry.Errorf(registry.CodeOf(err), "%s: make %s: %w", name, p.Role, err)
	}
	if p.Role == artifact.PartImage {
		return repo.putImage(ctx, p)
	}
	made, config, err := s.makePart(p)
	if err != nil {
		return storage.PartRef{}, registry.Errorf(registry.CodeOf(err), "%s: make %s: %w", name, p.Role, err)
	}
	for i, f := range sorted(p.Files) {
		if err := putFile(ctx, repo, made.layer(i), made.manifest.Layers[i], f); err != nil {
			return storage.PartRef{}, err
		}
	}
	if err := repo.push(ctx, "config of "+made.label(), made.manifest.Config, config); err != nil {
		return storage.PartRef{}, err
	}
	if err := repo.push(ctx, made.label(), made.desc, made.raw); err != nil {
		return storage.PartRef{}, err
	}
	return made.ref(), nil
}

// putFile stores a file unless it exists.
func putFile(ctx context.Context, repo repository, what string, desc ocispec.Descriptor, f storage.PartFile) error {
	there, err := repo.has(ctx, what, desc)
	if err != nil || there {
		return err
	}
	if f.Open == nil {
		return registry.Errorf(registry.CodeNotFound,
			"%s: %s %s does not exist, and its content was not given", repo.name, what, desc.Digest)
	}
	return repo.send(ctx, what, desc, func() (io.ReadCloser, error) {
		rc, err := f.Open()
		if err != nil {
			return nil, registry.Errorf(registry.CodeOf(err), "%s: open %s: %w", repo.name, what, err)
		}
		return rc, nil
	})
}

// makePart builds a manifest and the bytes of its config, and checks them by the rules of
// readers.
func (s *Store) makePart(p storage.Part) (made part, config []byte, err error) {
	shape, ok := shapeOf(p.Role)
	if !ok {
		return part{}, nil, registry.Errorf(registry.CodeInvalid, "there is no role %q", p.Role)
	}
	if p.Role == artifact.PartEngine {
		if err := checkTarget(p.Engine.Target); err != nil {
			return part{}, nil, err
		}
	}
	annotations, err := engineAnnotations(p.Engine)
	if err != nil {
		return part{}, nil, err
	}
	if !shape.model() {
		clear(annotations)
	}
	annotations[keyFormat], annotations[keyRole] = format, string(p.Role)
	s.stamp(annotations)
	files := sorted(p.Files)
	desc, config, err := configOf(shape, p, files)
	if err != nil {
		return part{}, nil, err
	}
	layers, err := layersOf(shape, files)
	if err != nil {
		return part{}, nil, err
	}
	raw, err := registry.CanonicalJSON(newManifest(shape.artifactType, desc, layers, annotations))
	if err != nil {
		return part{}, nil, err
	}
	if made, err = readPart(raw); err != nil {
		return part{}, nil, err
	}
	if shape.set() {
		_, err = readSet(config, made.files)
	}
	return made, config, err
}

// checkTarget refuses target versions that this program does not write.
func checkTarget(t artifact.Target) error {
	if t.V != artifact.TargetVersion {
		return registry.Errorf(registry.CodeInvalid, "target %s has version %d: want %d", t.Name, t.V, artifact.TargetVersion)
	}
	return t.Validate()
}

// stamp records the time, if one is set.
func (s *Store) stamp(annotations map[string]string) {
	if !s.options.Created.IsZero() {
		annotations[ocispec.AnnotationCreated] = s.options.Created.UTC().Format(time.RFC3339)
	}
}

// configOf returns the config of a part: ModelPack's, a case set, or OCI's empty one.
func configOf(s shape, p storage.Part, files []storage.PartFile) (ocispec.Descriptor, []byte, error) {
	var document any
	switch {
	case s.model():
		if err := registry.ValidateModel(p.Model); err != nil {
			return ocispec.Descriptor{}, nil, err
		}
		document = newPackConfig(p, files)
	case s.set():
		if p.Set == nil {
			return ocispec.Descriptor{}, nil, registry.Errorf(registry.CodeInvalid, "there is no description of its tensors")
		}
		document = p.Set
	default:
		return ocispec.DescriptorEmptyJSON, ocispec.DescriptorEmptyJSON.Data, nil
	}
	config, err := registry.CanonicalJSON(document)
	if err != nil {
		return ocispec.Descriptor{}, nil, err
	}
	return describe(s.config, config), config, nil
}

// layersOf creates one layer for each file. Without the title, "oras pull" would skip a file
// and still succeed; without the filepath, ModelPack's tools would.
func layersOf(s shape, files []storage.PartFile) ([]ocispec.Descriptor, error) {
	var layers []ocispec.Descriptor
	for _, f := range files {
		layer := ocispec.Descriptor{MediaType: s.layer, Digest: f.Digest, Size: f.Size, Annotations: map[string]string{ocispec.AnnotationTitle: f.Path}}
		if s.model() {
			mediaType, ok := layerType(f.Kind)
			if !ok {
				return nil, registry.Errorf(registry.CodeInvalid, "file %q is of the kind %q, which is unknown", f.Path, f.Kind)
			}
			layer.MediaType, layer.Annotations[keyFilepath] = mediaType, f.Path
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// sorted returns the files by path.
func sorted(files []storage.PartFile) []storage.PartFile {
	return slices.SortedStableFunc(slices.Values(files), func(a, b storage.PartFile) int {
		return cmp.Compare(a.Path, b.Path)
	})
}
