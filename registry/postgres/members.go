package postgres

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// AddBlob records a membership. If it exists, AddBlob only unmarks it.
func (db *DB) AddBlob(ctx context.Context, repository string, d registry.Digest, size int64) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	err := db.queries().BlobAdd(ctx, dbsqlc.BlobAddParams{Repository: repository, Digest: string(d), Size: size})
	return db.interpretError(fmt.Sprintf("blob %s in %s", d, repository), err)
}

// AddUploaded ends an upload and records the membership in one transaction.
func (db *DB) AddUploaded(
	ctx context.Context, owner storage.UploadOwner, id string, d registry.Digest, size int64,
) (added bool, err error) {
	err = db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		n, err := q.UploadEndOwned(ctx, dbsqlc.UploadEndOwnedParams{
			ID: id, Repository: owner.Repository, Principal: owner.Principal, Version: catalog.NewUploadVersion,
		})
		if added = n > 0; !added || err != nil {
			return err
		}
		return q.BlobAdd(ctx, dbsqlc.BlobAddParams{Repository: owner.Repository, Digest: string(d), Size: size})
	})
	if unstorable(err) {
		return false, nil // an unstorable text is not an identifier
	}
	return added && err == nil, db.interpretError(fmt.Sprintf("blob %s in %s", d, owner.Repository), err)
}

// Blob returns the size that the membership was recorded with, and unmarks it.
func (db *DB) Blob(ctx context.Context, repository string, d registry.Digest) (int64, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	row, err := db.queries().BlobSize(ctx, dbsqlc.BlobSizeParams{Repository: repository, Digest: string(d)})
	if err == nil {
		err = catalog.UnmarkRead(row.Condemned != nil, func() (int64, error) {
			return db.queries().BlobRescind(ctx, dbsqlc.BlobRescindParams{Repository: repository, Digest: string(d)})
		})
	}
	return row.Size, db.interpretError(fmt.Sprintf("blob %s in %s", d, repository), err)
}
