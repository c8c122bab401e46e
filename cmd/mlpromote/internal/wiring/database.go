package wiring

import (
	"context"
	"errors"
	"path/filepath"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/postgres"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Database is where names, heads and history are, and what a service keeps beside them.
type Database interface {
	storage.RepositoryRecords
	storage.Deleter
	storage.Catalog
	history.Configurations
	storage.Latest
	history.HistoryIndex
	storage.Listing
	storage.Intents
	storage.UploadStates
	storage.UploadCounts
	storage.ReferrerCounts
	storage.Tokens
	storage.Sessions
	storage.Secrets
	storage.Leases
	storage.Idempotency
	storage.GCStore
	storage.Inventory
	storage.MarkStore
	storage.CatalogIdentities
	storage.CollectionLock
	storage.Removals
	storage.Recipes
	storage.CatalogClock
	NodeTypes() storage.NodeTypes
	Runtimes() storage.Runtimes
	Webhooks() storage.Webhooks
	Deliveries() storage.Deliveries
	Checkpoints() trust.Checkpoints
	Damages() storage.Damages
	ScrubStates() storage.ScrubStates
	Replicas() storage.Replicas
	ReplicaMarks() storage.ReplicaMarks
	RestrictionBundles() storage.RestrictionBundles
	TrustBundles() storage.TrustBundles
	NodeReports() storage.NodeReports
	ResetDerived(ctx context.Context) error
	Close() error
}

// OpenDatabase opens the catalog of the data directory: in PostgreSQL where that is
// configured, else in a file. A directory belongs to one catalog, since what a catalog
// does not know may be collected.
func (l Location) OpenDatabase(ctx context.Context) (Database, error) {
	if err := l.Dir().RefuseHalf(); err != nil {
		return nil, err
	}
	if l.Database == "" {
		if err := l.Dir().ClaimDatabase(ctx, blob.NewDir(l.Data)); err != nil {
			return nil, err
		}
		db, err := sqlite.Open(ctx, filepath.Join(l.Data, datadir.DatabaseFile))
		if err != nil {
			return nil, err
		}
		db.Now = clock.Now
		return db, nil
	}
	db, err := postgres.Open(ctx, l.Database)
	if err != nil {
		return nil, err
	}
	if err := l.Dir().ClaimCatalog(ctx, db.ID(), db.String(), blob.NewDir(l.Data)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// LockServed locks the data directory for a service. One with a catalog in a file has it
// to itself; of those with a catalog in PostgreSQL there may be several, beside verbs.
func (l Location) LockServed(ctx context.Context) (announce func(url string) error, unlock func() error, err error) {
	if l.Database == "" {
		return l.Dir().LockExclusive(ctx, nil)
	}
	unlock, err = l.Dir().LockShared(ctx, l.Waiting)
	return func(string) error { return nil }, unlock, err
}
