package oci

import (
	"encoding/json"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// ReadPart describes a part from the exact bytes of its manifest, without a repository: its
// files, and the fields of an engine or reference model. Its Set is nil. Errors: CodeInvalid
// for a manifest that is not a part of this format; CodeTrust for impossible file names.
func ReadPart(manifest []byte) (storage.FetchedPart, error) {
	if err := checkRole(manifest); err != nil {
		return storage.FetchedPart{}, err
	}
	p, err := readPart(manifest)
	if err != nil {
		return storage.FetchedPart{}, err
	}
	return storage.FetchedPart{Role: p.role, Manifest: p.raw, Files: p.files, Engine: p.engine, ImageOf: p.imageOf}, nil
}

// checkRole refuses the manifests of other programs, which are most of those that are pushed. All
// the checks of readPart take several times as long. It reads the role as readPart does.
func checkRole(manifest []byte) error {
	var m struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		return registry.Errorf(registry.CodeInvalid, "not the JSON that was expected: %w", err)
	}
	_, err := shapeOfRole(artifact.PartKind(m.Annotations[keyRole]))
	return err
}

// shapeOfRole returns the shape of a part. Errors: CodeInvalid.
func shapeOfRole(role artifact.PartKind) (shape, error) {
	s, ok := shapeOf(role)
	if !ok {
		return shape{}, registry.Errorf(registry.CodeInvalid, "its role is %q, which is none of format %s", role, format)
	}
	return s, nil
}

// readPart reads a manifest of this format from its verified bytes. Errors: CodeInvalid for
// another kind of manifest; CodeTrust if its files would be outside their folder, collide or be
// hidden.
func readPart(raw []byte) (part, error) {
	manifest, err := readManifest(raw)
	if err != nil {
		return part{}, err
	}
	p := part{desc: describe(ocispec.MediaTypeImageManifest, raw), raw: raw, manifest: manifest, role: artifact.PartKind(manifest.Annotations[keyRole])}
	p.desc.ArtifactType = manifest.ArtifactType // empty of images
	shape, err := shapeOfRole(p.role)
	if err != nil {
		return part{}, err
	}
	p.shape = shape
	if err := p.checkShape(); err != nil {
		return part{}, err
	}
	if shape.image {
		return p, p.finishImage()
	}
	if p.files, err = readFiles(manifest.Layers, shape); err != nil {
		return part{}, err
	}
	if !shape.model() {
		return p, nil
	}
	if p.engine, err = readEngine(p.role, manifest.Annotations); err != nil {
		return part{}, err
	}
	if err := p.checkLoadProfile(); err != nil {
		return part{}, err
	}
	return p, p.finishEngine()
}
