package server

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/rest"
)

// targets lists the targets of the engines at the heads of a page of models. Targets with equal
// documents are listed once.
func (s server) targets(r *request) (*response, error) {
	models, err := s.modelPage(r)
	if err != nil {
		return nil, err
	}
	uses := make(map[registry.Digest]*rest.TargetUse)
	for _, m := range models.Items {
		for _, head := range m.Heads {
			engines, err := s.enginesAt(r.Context(), head)
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

// enginesAt returns the engines of a head. It caches them, since content of a digest never
// changes. The list of heads has already checked that the caller may see the head.
func (s server) enginesAt(ctx context.Context, head history.Head) ([]artifact.Engine, error) {
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

type engineKey struct {
	environment, model string
	release            registry.Digest
}

// engineCache caches the engines of releases. It drops arbitrary entries if there are too many.
type engineCache struct {
	mu      sync.Mutex
	engines map[engineKey][]artifact.Engine
}

// maxCachedReleases is more than the heads of most registries. A release takes some kilobytes.
const maxCachedReleases = 10_000

func (c *engineCache) get(key engineKey) ([]artifact.Engine, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	engines, ok := c.engines[key]
	return engines, ok
}

func (c *engineCache) put(key engineKey, engines []artifact.Engine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.engines == nil {
		c.engines = make(map[engineKey][]artifact.Engine)
	}
	for other := range c.engines {
		if len(c.engines) < maxCachedReleases {
			break
		}
		delete(c.engines, other)
	}
	c.engines[key] = engines
}
