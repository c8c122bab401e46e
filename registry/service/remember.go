package service

import (
	"context"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/service/promotion"
	"mlpromote.dev/mlpromote/registry/service/resolution"
	"mlpromote.dev/mlpromote/registry/service/rollback"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Remembering is a Service that remembers the answers of resolves and previews until the catalog has a newer
// event about them. It is safe for concurrent use.
//
// The environments and trust of the Service must not change. Create a new one to change them.
type Remembering struct {
	*Service
	resolved *resolution.Cache
	previews *promotion.Previews
}

var (
	_ api.Interface = (*Remembering)(nil)
	_ api.Previewer = (*Remembering)(nil)
)

// Remember returns s with a cache of about the given number of bytes for resolves, and another of a
// quarter of that for previews. latest must use the catalog of s.
func Remember(s *Service, latest storage.Latest, bytes int) *Remembering {
	return &Remembering{Service: s, resolved: resolution.NewCache(s.backend, latest, bytes), previews: promotion.NewPreviews(s.backend, latest, bytes/4)}
}

// Resolve is [resolution.Cache.Resolve].
func (m *Remembering) Resolve(ctx context.Context, q api.ResolveQuery) (api.Resolution, error) {
	return m.resolved.Resolve(ctx, q)
}

// Standing is [resolution.Cache.Standing].
func (m *Remembering) Standing(ctx context.Context, environment, model string) ([]api.Candidate, error) {
	return m.resolved.Standing(ctx, environment, model)
}

// Preview is [promotion.Previews.Preview].
func (m *Remembering) Preview(ctx context.Context, req api.PromoteRequest) (api.Promotion, error) {
	return m.previews.Preview(ctx, req)
}

// PreviewRollback is [rollback.Preview].
func (m *Remembering) PreviewRollback(ctx context.Context, req api.RollbackRequest) (api.Promotion, error) {
	return rollback.Preview(ctx, m.backend, req)
}

// Bytes returns the approximate size of the caches in bytes.
func (m *Remembering) Bytes() int { return m.resolved.Bytes() + m.previews.Bytes() }
