package lookup

import (
	"context"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Models lists models with their heads.
func Models(
	ctx context.Context, s *backend.Backend,
	environment, after string,
	limit int,
) (storage.Page[history.ModelHeads], error) {
	var page storage.Page[history.ModelHeads]
	if environment != "" {
		if _, err := s.Find(environment); err != nil {
			return page, err
		}
	}
	limit = storage.PageLimit(limit)
	heads, err := s.Listing.ModelPage(ctx, environment, after, limit+1)
	if err != nil {
		return page, err
	}
	if err := markSkipped(ctx, s, heads); err != nil {
		return page, err
	}
	for _, h := range heads {
		if n := len(page.Items); n == 0 || page.Items[n-1].Name != h.Model {
			page.Items = append(page.Items, history.ModelHeads{Name: h.Model})
		}
		last := &page.Items[len(page.Items)-1]
		last.Heads = append(last.Heads, h)
	}
	return cut(page, limit, func(m history.ModelHeads) string { return m.Name }), nil
}

// Releases lists the releases of a model in an environment.
func Releases(
	ctx context.Context, s *backend.Backend,
	environment, model, after string,
	limit int,
) (storage.Page[storage.TaggedRelease], error) {
	var page storage.Page[storage.TaggedRelease]
	e, err := s.Find(environment)
	if err != nil {
		return page, err
	}
	limit = storage.PageLimit(limit)
	var tags []storage.Tagged
	if e.External() {
		tags, err = everHead(ctx, s, environment, model, after)
	} else { // one more for the mirror of the head, and one to see whether more follow
		tags, err = s.Listing.TagPage(ctx, registry.Repository(environment, model), artifact.ReleaseType, after, limit+2)
	}
	if err != nil {
		return page, err
	}
	for _, t := range tags {
		if t.Tag != artifact.HeadTag {
			page.Items = append(page.Items, storage.TaggedRelease{Tag: t.Tag, Release: t.Digest})
		}
	}
	return cut(page, limit, func(r storage.TaggedRelease) string { return r.Tag }), nil
}

// everHead lists the releases that were ever the head of an environment whose content is on
// another registry. Anyone may write tags there, so only the history is reliable.
func everHead(ctx context.Context, s *backend.Backend, environment, model, after string) ([]storage.Tagged, error) {
	found := make(map[string]registry.Digest)
	for _, kind := range []history.EventKind{history.EventPublish, history.EventPromote} {
		query := history.HistoryQuery{Environment: environment, Model: model, Kind: kind}
		for e, err := range s.Catalog.History(ctx, query) {
			if err != nil {
				return nil, err
			}
			if e.Version > after {
				found[e.Version] = e.Release
			}
		}
	}
	var tags []storage.Tagged
	for _, tag := range slices.Sorted(maps.Keys(found)) {
		tags = append(tags, storage.Tagged{Tag: tag, Digest: found[tag]})
	}
	return tags, nil
}

// cut limits a page to limit items, and sets Next if more follow.
func cut[T any](page storage.Page[T], limit int, name func(T) string) storage.Page[T] {
	if len(page.Items) > limit {
		page.Items = page.Items[:limit]
		page.Next = name(page.Items[limit-1])
	}
	return page
}
