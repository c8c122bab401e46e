package sqlite

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

var _ storage.Deleter = (*DB)(nil)

// DeleteManifest deletes a record, its derived data and its tags in one transaction.
func (db *DB) DeleteManifest(ctx context.Context, repository string, d registry.Digest) error {
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error { return deleteManifest(ctx, q, repository, d) })
	return db.interpretError(fmt.Sprintf("manifest %s in %s", d, repository), err)
}

func deleteManifest(ctx context.Context, q *dbsqlc.Queries, repository string, d registry.Digest) error {
	n, err := q.ManifestDelete(ctx, dbsqlc.ManifestDeleteParams{Repository: repository, Digest: string(d)})
	if err := catalog.Found(n, err); err != nil {
		return err
	}
	if err := q.DerivedDelete(ctx, dbsqlc.DerivedDeleteParams{Repository: repository, Digest: string(d)}); err != nil {
		return err
	}
	return q.TagDeleteAll(ctx, dbsqlc.TagDeleteAllParams{Repository: repository, Digest: string(d)})
}

// DeleteTag deletes a tag.
func (db *DB) DeleteTag(ctx context.Context, repository, tag string) error {
	n, err := db.write().TagDelete(ctx, dbsqlc.TagDeleteParams{Repository: repository, Tag: tag})
	return db.interpretError(fmt.Sprintf("tag %s in %s", tag, repository), catalog.Found(n, err))
}

// RemoveBlob deletes a membership.
func (db *DB) RemoveBlob(ctx context.Context, repository string, d registry.Digest) error {
	n, err := db.write().BlobRemove(ctx, dbsqlc.BlobRemoveParams{Repository: repository, Digest: string(d)})
	return db.interpretError(fmt.Sprintf("blob %s in %s", d, repository), catalog.Found(n, err))
}
