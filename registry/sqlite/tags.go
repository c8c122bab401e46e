package sqlite

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// Tag returns the digest that a tag names.
func (db *DB) Tag(ctx context.Context, repository, tag string) (registry.Digest, error) {
	key := dbsqlc.TagGetParams{Repository: repository, Tag: tag}
	d, err := recall(ctx, db.steady, key, func() (string, error) { return db.read().TagGet(ctx, key) })
	return registry.Digest(d), db.interpretError(fmt.Sprintf("tag %s in %s", tag, repository), err)
}

// SetTag sets a tag. Errors: CodeNotFound when the manifest of d is not recorded.
func (db *DB) SetTag(ctx context.Context, repository, tag string, d registry.Digest) error {
	err := db.writes.do(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		set, err := q.TagSetRecorded(ctx, dbsqlc.TagSetRecordedParams{Repository: repository, Tag: tag, Digest: string(d)})
		return catalog.TagSet(repository, tag, d, set, err)
	})
	return db.interpretError(fmt.Sprintf("tag %s in %s", tag, repository), err)
}

// ListTags lists tags in byte order.
func (db *DB) ListTags(ctx context.Context, repository, after string, limit int) ([]string, error) {
	if limit <= 0 {
		limit = -1
	}
	tags, err := db.read().TagList(ctx, dbsqlc.TagListParams{Repository: repository, After: after, PageSize: int64(limit)})
	return tags, db.interpretError("tags of "+repository, err)
}
