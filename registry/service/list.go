package service

import (
	"context"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// Models lists models with their heads.
func (s *Service) Models(
	ctx context.Context,
	environment, after string,
	limit int,
) (registry.Page[registry.ModelHeads], error) {
	var page registry.Page[registry.ModelHeads]
	if environment != "" {
		if _, err := s.find(environment); err != nil {
			return page, err
		}
	}
	limit = registry.PageLimit(limit)
	heads, err := s.Listing.ModelPage(ctx, environment, after, limit+1)
	if err != nil {
		return page, err
	}
	if err := s.markSkipped(ctx, heads); err != nil {
		return page, err
	}
	for _, h := range heads {
		if n := len(page.Items); n == 0 || page.Items[n-1].Name != h.Model {
			page.Items = append(page.Items, registry.ModelHeads{Name: h.Model})
		}
		last := &page.Items[len(page.Items)-1]
		last.Heads = append(last.Heads, h)
	}
	return cut(page, limit, func(m registry.ModelHeads) string { return m.Name }), nil
}

// Releases lists the releases of a model in an environment.
func (s *Service) Releases(
	ctx context.Context,
	environment, model, after string,
	limit int,
) (registry.Page[registry.TaggedRelease], error) {
	var page registry.Page[registry.TaggedRelease]
	e, err := s.find(environment)
	if err != nil {
		return page, err
	}
	limit = registry.PageLimit(limit)
	var tags []registry.Tagged
	if e.External() {
		tags, err = s.everHead(ctx, environment, model, after)
	} else { // one more for the mirror of the head, and one to see whether more follow
		tags, err = s.Listing.TagPage(ctx, registry.Repository(environment, model), registry.ReleaseType, after, limit+2)
	}
	if err != nil {
		return page, err
	}
	for _, t := range tags {
		if t.Tag != registry.HeadTag {
			page.Items = append(page.Items, registry.TaggedRelease{Tag: t.Tag, Release: t.Digest})
		}
	}
	return cut(page, limit, func(r registry.TaggedRelease) string { return r.Tag }), nil
}

// everHead lists the releases that were ever the head of an environment whose content is on
// another registry. Anyone may write tags there, so only the history is reliable.
func (s *Service) everHead(ctx context.Context, environment, model, after string) ([]registry.Tagged, error) {
	found := make(map[string]registry.Digest)
	for _, kind := range []registry.EventKind{registry.EventPublish, registry.EventPromote} {
		query := registry.HistoryQuery{Environment: environment, Model: model, Kind: kind}
		for e, err := range s.Catalog.History(ctx, query) {
			if err != nil {
				return nil, err
			}
			if e.Version > after {
				found[e.Version] = e.Release
			}
		}
	}
	var tags []registry.Tagged
	for _, tag := range slices.Sorted(maps.Keys(found)) {
		tags = append(tags, registry.Tagged{Tag: tag, Digest: found[tag]})
	}
	return tags, nil
}

// cut limits a page to limit items, and sets Next if more follow.
func cut[T any](page registry.Page[T], limit int, name func(T) string) registry.Page[T] {
	if len(page.Items) > limit {
		page.Items = page.Items[:limit]
		page.Next = name(page.Items[limit-1])
	}
	return page
}
