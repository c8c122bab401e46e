package postgres

import (
	"context"
	"fmt"
	"math"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// Tag returns the digest that a tag names.
func (db *DB) Tag(ctx context.Context, repository, tag string) (registry.Digest, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	d, err := db.queries().TagGet(ctx, dbsqlc.TagGetParams{Repository: repository, Tag: tag})
	return registry.Digest(d), db.interpretError(fmt.Sprintf("tag %s in %s", tag, repository), err)
}

// SetTag sets a tag. Errors: CodeNotFound when the manifest of d is not recorded.
func (db *DB) SetTag(ctx context.Context, repository, tag string, d registry.Digest) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	set, err := db.queries().
		TagSetRecorded(ctx, dbsqlc.TagSetRecordedParams{Repository: repository, Tag: tag, Digest: string(d)})
	err = catalog.TagSet(repository, tag, d, set, err)
	return db.interpretError(fmt.Sprintf("tag %s in %s", tag, repository), err)
}

// ListTags lists tags in byte order.
func (db *DB) ListTags(ctx context.Context, repository, after string, n int) ([]string, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	if n <= 0 || n > math.MaxInt32 {
		n = math.MaxInt32
	}
	tags, err := db.queries().TagList(ctx, dbsqlc.TagListParams{Repository: repository, After: after, PageSize: int32(n)})
	return tags, db.interpretError("tags of "+repository, err)
}
