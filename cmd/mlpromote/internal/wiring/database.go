package wiring

import (
	"context"
	"errors"
	"path/filepath"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/postgres"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

// Database is where names, heads and history are, and what a service keeps beside them.
type Database interface {
	registry.RepositoryRecords
	registry.Deleter
	registry.Catalog
	registry.Configurations
	registry.Latest
	registry.HistoryIndex
	registry.Listing
	registry.Intents
	registry.UploadStates
	registry.UploadCounts
	registry.ReferrerCounts
	registry.Tokens
	registry.Sessions
	registry.Secrets
	registry.Leases
	registry.Idempotency
	registry.GCStore
	registry.Inventory
	registry.MarkStore
	registry.CatalogIdentities
	registry.CollectionLock
	registry.Removals
	registry.CatalogClock
	NodeTypes() registry.NodeTypes
	Runtimes() registry.Runtimes
	Webhooks() registry.Webhooks
	Deliveries() registry.Deliveries
	Checkpoints() registry.Checkpoints
	Damages() registry.Damages
	ScrubStates() registry.ScrubStates
	Replicas() registry.Replicas
	ReplicaMarks() registry.ReplicaMarks
	RestrictionBundles() registry.RestrictionBundles
	TrustBundles() registry.TrustBundles
	NodeReports() registry.NodeReports
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
