package server

import (
	"cmp"
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// listHeads lists heads by model and environment. The limit of a page counts models.
func listHeads(s server, r *request) (*response, error) {
	environment, model := r.Values.Get("environment"), r.Values.Get("model")
	if model != "" {
		heads, err := s.Registry.Heads(r.Context(), environment, model)
		if err != nil {
			return nil, err
		}
		return ok(nonNil(heads))
	}
	models, err := modelPage(s, r)
	if err != nil {
		return nil, err
	}
	var heads []history.Head
	for _, m := range models.Items {
		heads = append(heads, m.Heads...)
	}
	return page(r, heads, models.Next)
}

func modelPage(s server, r *request) (storage.Page[history.ModelHeads], error) {
	after, limit, err := pageOf(r.Values)
	if err != nil {
		return storage.Page[history.ModelHeads]{}, err
	}
	return s.Registry.Models(r.Context(), r.Values.Get("environment"), after, limit)
}

// listTargets lists the targets of the engines at the heads of a page of models. Targets with equal
// documents are listed once.
func listTargets(s server, r *request) (*response, error) {
	models, err := modelPage(s, r)
	if err != nil {
		return nil, err
	}
	uses := make(map[registry.Digest]*rest.TargetUse)
	for _, m := range models.Items {
		for _, head := range m.Heads {
			engines, err := enginesAt(r.Context(), s, head)
			if err != nil {
				return nil, err
			}
			for _, e := range engines {
				if err := use(uses, head, e); err != nil {
					return nil, err
				}
			}
		}
	}
	var list []rest.TargetUse
	for _, u := range uses {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b rest.TargetUse) int {
		return cmp.Or(cmp.Compare(a.Target.Name, b.Target.Name), cmp.Compare(a.Engines[0].Engine, b.Engines[0].Engine))
	})
	return page(r, list, models.Next)
}

// enginesAt returns the engines of a head. It caches them, since content of a digest never
// changes. The list of heads has already checked that the caller may see the head.
func enginesAt(ctx context.Context, s server, head history.Head) ([]artifact.Engine, error) {
	key := engineKey{head.Environment, head.Model, head.Release}
	if engines, ok := s.engineCache.get(key); ok {
		return engines, nil
	}
	release, err := s.Registry.Release(ctx, head.Environment, head.Model, string(head.Release))
	if err != nil {
		return nil, err
	}
	s.engineCache.put(key, release.Engines)
	return release.Engines, nil
}

func use(uses map[registry.Digest]*rest.TargetUse, head history.Head, e artifact.Engine) error {
	d, err := registry.CanonicalDigest(e.Target)
	if err != nil {
		return err
	}
	if uses[d] == nil {
		uses[d] = &rest.TargetUse{Target: e.Target}
	}
	uses[d].Engines = append(uses[d].Engines, rest.TargetEngine{
		Environment: head.Environment, Model: head.Model, Version: head.Version, Engine: e.Digest, Variant: e.Variant,
	})
	return nil
}
