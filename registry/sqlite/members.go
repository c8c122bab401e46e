package sqlite

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// AddBlob records a membership. If it exists, AddBlob only unmarks it.
func (db *DB) AddBlob(ctx context.Context, repository string, d registry.Digest, size int64) error {
	err := db.writes.do(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		return q.BlobAdd(ctx,
			dbsqlc.BlobAddParams{Repository: repository, Digest: string(d), Size: size, Created: db.now().UnixMicro()})
	})
	return db.interpretError(fmt.Sprintf("blob %s in %s", d, repository), err)
}

// Blob returns the size that the membership was recorded with, and unmarks it.
func (db *DB) Blob(ctx context.Context, repository string, d registry.Digest) (int64, error) {
	row, err := db.read().BlobSize(ctx, dbsqlc.BlobSizeParams{Repository: repository, Digest: string(d)})
	if err == nil {
		err = catalog.UnmarkRead(row.Condemned != 0, func() (int64, error) {
			return db.write().BlobRescind(ctx, dbsqlc.BlobRescindParams{Repository: repository, Digest: string(d)})
		})
	}
	if err != nil {
		return 0, db.interpretError(fmt.Sprintf("blob %s in %s", d, repository), err)
	}
	return row.Size, nil
}
