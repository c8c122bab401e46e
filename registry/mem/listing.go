package mem

import (
	"cmp"
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// ModelPage lists the heads of a page of models.
func (db *DB) ModelPage(ctx context.Context, environment, after string, limit int) ([]history.Head, error) {
	heads, err := db.Heads(ctx, environment, "")
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(heads, func(a, b history.Head) int { return cmp.Compare(a.Model, b.Model) })
	var page []history.Head
	models := 0
	for _, h := range heads {
		if h.Model <= after {
			continue
		}
		if len(page) == 0 || page[len(page)-1].Model != h.Model {
			models++
		}
		if models > limit {
			break
		}
		page = append(page, h)
	}
	return page, nil
}

// TagPage lists tags of manifests of a type.
func (db *DB) TagPage(ctx context.Context, repository, artifactType, after string, limit int) ([]storage.Tagged, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	var page []storage.Tagged
	for key, d := range db.tags {
		m, recorded := db.manifests[member{repository, d}]
		if key.repository == repository && key.tag > after && recorded && m.Derived.ArtifactType == artifactType {
			page = append(page, storage.Tagged{Tag: key.tag, Digest: d})
		}
	}
	slices.SortFunc(page, func(a, b storage.Tagged) int { return cmp.Compare(a.Tag, b.Tag) })
	return page[:min(len(page), limit)], nil
}
