package oci

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// Sources reads a sources index and the manifests in it. Errors: see [registry.PartStore],
// and CodeTrust when index and manifest differ.
func (s *Store) Sources(ctx context.Context, name string, d registry.Digest) (registry.Sources, error) {
	repo, err := s.repository(ctx, name)
	if err != nil {
		return registry.Sources{}, err
	}
	t, err := repo.tree(ctx, "sources", typeSources, string(d))
	if err != nil {
		return registry.Sources{}, err
	}
	sources, err := t.sources()
	if err != nil {
		return registry.Sources{}, repo.about("sources", d, err)
	}
	return sources, nil
}

// sources converts the tree of sources.
func (t tree) sources() (registry.Sources, error) {
	sources := registry.Sources{
		Digest: t.desc.Digest,
		Model:  t.index.Annotations[keyModel],
		Parts:  make(map[registry.PartKind]registry.PartRef, len(t.parts)),
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
	if _, ok := sources.Parts[registry.PartReference]; !ok {
		return sources, registry.Errorf(registry.CodeInvalid, "it has no reference model")
	}
	return sources, nil
}
