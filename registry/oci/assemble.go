package oci

import (
	"context"
	"slices"
	"strconv"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Assemble stores an index of existing parts, and then its tags. Only the order of engines matters, which
// the index records. Errors: CodeNotFound for a missing part; CodeInvalid and CodeTrust for an index
// that readers would refuse, such as one with an engine that names other limits.
func (s *Store) Assemble(ctx context.Context, name string, a storage.Assembly) (registry.Digest, error) {
	repo, err := s.repository(ctx, name)
	if err != nil {
		return "", err
	}
	parts, err := repo.parts(ctx, a.Parts)
	if err != nil {
		return "", err
	}
	t, err := s.makeTree(a, parts)
	if err != nil {
		return "", registry.Errorf(registry.CodeOf(err), "%s: assemble %s %s: %w", name, a.Model, a.Version, err)
	}
	if err := repo.push(ctx, "index", t.desc, t.raw); err != nil {
		return "", err
	}
	for _, tag := range a.Tags {
		if err := repo.Tag(ctx, t.desc, tag); err != nil {
			return "", repo.failed("tag", tag, string(t.desc.Digest), err)
		}
	}
	return t.desc.Digest, nil
}

// parts reads the parts of an assembly.
func (r repository) parts(ctx context.Context, refs []storage.PartRef) ([]part, error) {
	var parts []part
	for _, ref := range refs {
		p, err := r.part(ctx, ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: ref.Digest, Size: ref.Size})
		if err != nil {
			return nil, err
		}
		if p.role != ref.Role {
			return nil, registry.Errorf(registry.CodeInvalid,
				"%s: manifest %s has the role %s: want %s", r.name, ref.Digest, p.role, ref.Role)
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// engineDigests lists the engines among parts, in the given order.
func engineDigests(parts []part) []registry.Digest {
	digests := []registry.Digest{}
	for _, p := range parts {
		if p.role == artifact.PartEngine {
			digests = append(digests, p.desc.Digest)
		}
	}
	return digests
}

// makeTree builds an index and checks it by the rules of readers.
func (s *Store) makeTree(a storage.Assembly, parts []part) (tree, error) {
	index := ocispec.Index{
		Versioned:    specs.Versioned{SchemaVersion: schema},
		MediaType:    ocispec.MediaTypeImageIndex,
		ArtifactType: typeSources,
		Annotations:  map[string]string{keyFormat: format, keyModel: a.Model},
	}
	if a.Version != "" {
		index.ArtifactType = typeRelease
		index.Annotations[keyVersion] = a.Version
		index.Annotations[keyRevision] = strconv.Itoa(a.Revision)
		index.Annotations[keySources] = string(a.Sources)
		index.Annotations[keyPlan] = string(a.Plan)
		set(index.Annotations, keyPart, string(a.Part))
		order, err := registry.CanonicalJSON(engineDigests(parts))
		if err != nil {
			return tree{}, err
		}
		index.Annotations[keyOrder] = string(order)
	}
	s.stamp(index.Annotations)
	slices.SortFunc(parts, canonicalOrder)
	for _, p := range parts {
		entry := p.desc
		entry.Annotations = ours(p.manifest.Annotations)
		index.Manifests = append(index.Manifests, entry)
	}
	raw, err := registry.CanonicalJSON(index)
	if err != nil {
		return tree{}, err
	}
	if index, err = readIndex(raw, index.ArtifactType); err != nil {
		return tree{}, err
	}
	t := tree{desc: describe(ocispec.MediaTypeImageIndex, raw), raw: raw, index: index, parts: parts}
	if a.Version != "" {
		_, err = t.release()
	} else {
		_, err = t.sources()
	}
	return t, err
}
