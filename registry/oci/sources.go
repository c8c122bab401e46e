package oci

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Sources reads a sources index and the manifests in it. Errors: see [storage.PartStore],
// and CodeTrust when index and manifest differ.
func (s *Store) Sources(ctx context.Context, name string, d registry.Digest) (storage.Sources, error) {
	repo, err := s.repository(ctx, name)
	if err != nil {
		return storage.Sources{}, err
	}
	t, err := repo.tree(ctx, "sources", typeSources, string(d))
	if err != nil {
		return storage.Sources{}, err
	}
	sources, err := t.sources()
	if err != nil {
		return storage.Sources{}, repo.about("sources", d, err)
	}
	return sources, nil
}

// sources converts the tree of sources.
func (t tree) sources() (storage.Sources, error) {
	sources := storage.Sources{
		Digest: t.desc.Digest,
		Model:  t.index.Annotations[keyModel],
		Parts:  make(map[artifact.PartKind]storage.PartRef, len(t.parts)),
	}
	if err := registry.ValidateModel(sources.Model); err != nil {
		return sources, err
	}
	for _, p := range t.parts {
		if _, ok := sources.Parts[p.role]; ok {
			return sources, registry.Errorf(registry.CodeInvalid, "it has more than one entry with the role %s: want one", p.role)
		}
		sources.Parts[p.role] = p.ref()
	}
	if _, ok := sources.Parts[artifact.PartReference]; !ok {
		return sources, registry.Errorf(registry.CodeInvalid, "it has no reference model")
	}
	return sources, nil
}
