package sqlite

import (
	"context"
	"sync"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

var (
	_ storage.CatalogIdentities = (*DB)(nil)
	_ storage.CollectionLock    = (*DB)(nil)
)

// CatalogIdentity reads the identity of the catalog. Its instance is the file of the database,
// so a copy has another one.
func (db *DB) CatalogIdentity(ctx context.Context) (storage.CatalogIdentity, error) {
	row, err := db.read().CatalogGet(ctx)
	if err != nil {
		return storage.CatalogIdentity{}, db.interpretError("identity of the catalog", err)
	}
	instance, err := instanceOf(db.absolute)
	if err != nil {
		return storage.CatalogIdentity{}, registry.Errorf(registry.CodeUnavailable, "identity of the catalog: %w", err)
	}
	return catalog.IdentityRow(row).Identity(instance), nil
}

// RecordContent records the content that the catalog owns.
func (db *DB) RecordContent(ctx context.Context, before, after storage.CatalogIdentity) error {
	rows, err := db.write().CatalogRecordContent(ctx, dbsqlc.CatalogRecordContentParams{
		ID: before.ID, StorageBefore: before.Storage, EpochBefore: before.Epoch, Storage: after.Storage, Epoch: after.Epoch,
	})
	return db.interpretError("content of the catalog", catalog.ContentRecorded(db.path, rows, err))
}

// Renew gives a catalog that was restored from a backup the new identity id. The previous ID
// becomes its origin, and it owns no content yet. All sessions end: who signed out since the backup is
// not known here. A catalog that already has the ID does not change.
func (db *DB) Renew(ctx context.Context, id string) error {
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		row, err := q.CatalogGet(ctx)
		if err != nil || row.ID == id {
			return err
		}
		if err := q.SessionEndAll(ctx); err != nil {
			return err
		}
		return q.CatalogRenew(ctx, dbsqlc.CatalogRenewParams{ID: id, Origins: catalog.JoinOrigins(row.ID, row.Origins)})
	})
	return db.interpretError("identity of the catalog", err)
}

// LockCollection serializes collectors within this process. The lock of the data directory
// excludes other processes.
func (db *DB) LockCollection(ctx context.Context) (storage.CollectionSession, error) {
	select {
	case db.collecting <- struct{}{}:
		return &collectionTurn{end: sync.OnceFunc(func() { <-db.collecting })}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type collectionTurn struct{ end func() }

// Held always succeeds: only Release ends the lock.
func (*collectionTurn) Held(ctx context.Context) error { return ctx.Err() }

// Release releases the lock.
func (t *collectionTurn) Release() { t.end() }
