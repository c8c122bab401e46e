package sqlite

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// AddBlob records a membership. If it exists, AddBlob only unmarks it.
func (db *DB) AddBlob(ctx context.Context, repository string, d registry.Digest, size int64) error {
	err := db.writes.do(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		return db.addBlob(ctx, q, repository, d, size)
	})
	return db.interpretError(fmt.Sprintf("blob %s in %s", d, repository), err)
}

func (db *DB) addBlob(ctx context.Context, q *dbsqlc.Queries, repository string, d registry.Digest, size int64) error {
	return q.BlobAdd(ctx,
		dbsqlc.BlobAddParams{Repository: repository, Digest: string(d), Size: size, Created: db.now().UnixMicro()})
}

// AddUploaded ends an upload and records the membership in one transaction.
func (db *DB) AddUploaded(
	ctx context.Context, owner storage.UploadOwner, id string, d registry.Digest, size int64,
) (added bool, err error) {
	err = db.writes.do(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		n, err := q.UploadEndOwned(ctx, dbsqlc.UploadEndOwnedParams{
			ID: id, Repository: owner.Repository, Principal: owner.Principal, Version: catalog.NewUploadVersion,
		})
		if added = n > 0; !added || err != nil {
			return err
		}
		return db.addBlob(ctx, q, owner.Repository, d, size)
	})
	return added && err == nil, db.interpretError(fmt.Sprintf("blob %s in %s", d, owner.Repository), err)
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
