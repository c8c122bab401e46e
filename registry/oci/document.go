package oci

import (
	"strings"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// schema is the schemaVersion of every OCI manifest and index.
const schema = 2

// newManifest creates a manifest with the fields that all our manifests have.
func newManifest(artifactType string, config ocispec.Descriptor, layers []ocispec.Descriptor, annotations map[string]string) ocispec.Manifest {
	return ocispec.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: schema},
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: artifactType,
		Config:       config,
		Layers:       layers,
		Annotations:  annotations,
	}
}

// readManifest reads a manifest within limits. It does not check the manifest's purpose.
// Errors: CodeInvalid.
func readManifest(raw []byte) (ocispec.Manifest, error) {
	var m ocispec.Manifest
	if err := decode(raw, &m); err != nil {
		return m, err
	}
	if m.SchemaVersion != schema || m.MediaType != ocispec.MediaTypeImageManifest {
		return m, registry.Errorf(registry.CodeInvalid,
			"not an OCI image manifest: schemaVersion %d, mediaType %q", m.SchemaVersion, m.MediaType)
	}
	if len(m.Layers) > maxLayers {
		return m, registry.Errorf(registry.CodeInvalid, "it has %d layers: at most %d are read", len(m.Layers), maxLayers)
	}
	if err := checkAnnotations(m.Annotations); err != nil {
		return m, err
	}
	for _, desc := range append([]ocispec.Descriptor{m.Config}, m.Layers...) {
		if err := checkDescriptor(desc); err != nil {
			return m, err
		}
		if err := checkAnnotations(desc.Annotations); err != nil {
			return m, err
		}
	}
	return m, nil
}

// readIndex reads an index of this format within limits. Errors: CodeInvalid.
func readIndex(raw []byte, artifactType string) (ocispec.Index, error) {
	var index ocispec.Index
	if err := decode(raw, &index); err != nil {
		return index, err
	}
	if index.SchemaVersion != schema || index.MediaType != ocispec.MediaTypeImageIndex {
		return index, registry.Errorf(registry.CodeInvalid,
			"not an OCI image index: schemaVersion %d, mediaType %q", index.SchemaVersion, index.MediaType)
	}
	if err := checkKind(index.ArtifactType, artifactType, index.Annotations); err != nil {
		return index, err
	}
	if len(index.Manifests) > maxEntries {
		return index, registry.Errorf(registry.CodeInvalid, "it has %d entries: at most %d are read", len(index.Manifests), maxEntries)
	}
	if err := checkAnnotations(index.Annotations); err != nil {
		return index, err
	}
	return index, checkEntries(index.Manifests, artifactType)
}

// checkEntries checks the descriptors in an index of this format.
func checkEntries(entries []ocispec.Descriptor, indexType string) error {
	seen := make(map[registry.Digest]bool, len(entries))
	for _, entry := range entries {
		if err := checkDescriptor(entry); err != nil {
			return err
		}
		role := artifact.PartKind(entry.Annotations[keyRole])
		s, ok := shapeOf(role)
		switch {
		case seen[entry.Digest]:
			return registry.Errorf(registry.CodeInvalid, "it has the entry %s twice", entry.Digest)
		case entry.MediaType != ocispec.MediaTypeImageManifest:
			return registry.Errorf(registry.CodeInvalid, "entry %s is a %q, not an image manifest", entry.Digest, entry.MediaType)
		case !ok || s.index != indexType:
			return registry.Errorf(registry.CodeInvalid, "entry %s has the role %q, which is not allowed here", entry.Digest, role)
		}
		if err := checkAnnotations(entry.Annotations); err != nil {
			return err
		}
		seen[entry.Digest] = true
	}
	return nil
}

// checkKind checks artifact type and format of a document.
func checkKind(got, want string, annotations map[string]string) error {
	family, _, _ := strings.Cut(want, ".v1+")
	switch version, ok := annotations[keyFormat]; {
	case got != want && !strings.HasPrefix(got, family+".v"):
		return registry.Errorf(registry.CodeInvalid, "its artifact type is %q: want %s", got, want)
	case !ok:
		return registry.Errorf(registry.CodeInvalid, "it has no annotation %s: it was not made by mlpromote", keyFormat)
	case got != want || version != format:
		err := registry.Errorf(registry.CodeInvalid,
			"it was made by a newer version of mlpromote: %s, format %q, and this one reads %s, format %q", got, version, want, format)
		return registry.WithHint(err, "update mlpromote on this machine")
	}
	return nil
}

func checkAnnotations(annotations map[string]string) error {
	if len(annotations) > maxAnnotations {
		return registry.Errorf(registry.CodeInvalid,
			"it has %d annotations in one place: at most %d are read", len(annotations), maxAnnotations)
	}
	return nil
}

// ours returns the annotations that the index of a release repeats.
func ours(annotations map[string]string) map[string]string {
	out := make(map[string]string)
	for key, value := range annotations {
		if strings.HasPrefix(key, prefix) {
			out[key] = value
		}
	}
	return out
}
