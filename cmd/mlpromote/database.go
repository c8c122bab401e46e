package main

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/postgres"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

// database is where names, heads and history are, and what a service keeps beside them.
type database interface {
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
	Damages() registry.Damages
	ScrubStates() registry.ScrubStates
	ResetDerived(ctx context.Context) error
	Close() error
}

// configureDatabase takes the database from the environment where no flag names one.
func (a *app) configureDatabase() error {
	if a.database == "" {
		a.database = a.getenv("MLPROMOTE_DATABASE")
		return nil
	}
	if a.registry != "" {
		return registry.Errorf(registry.CodeInvalid, "--database is for a data directory, and the service at %s has its own: want one of the two", a.registry)
	}
	if u, err := url.Parse(a.database); err == nil {
		if _, told := u.User.Password(); told {
			a.ui.Note("other users of this machine can read the password in --database; MLPROMOTE_DATABASE, PGPASSWORD and ~/.pgpass keep it to yourself")
		}
	}
	return nil
}

// openDatabase opens the catalog of the data directory: in PostgreSQL where that is
// configured, else in a file. A directory belongs to one catalog, since what a catalog
// does not know may be collected.
func (a *app) openDatabase(ctx context.Context) (database, error) {
	if err := a.dir().RefuseHalf(); err != nil {
		return nil, err
	}
	if a.database == "" {
		if err := a.dir().ClaimDatabase(ctx, blob.NewDir(a.data)); err != nil {
			return nil, err
		}
		db, err := sqlite.Open(ctx, filepath.Join(a.data, datadir.DatabaseFile))
		if err != nil {
			return nil, err
		}
		db.Now = now
		return db, nil
	}
	db, err := postgres.Open(ctx, a.database)
	if err != nil {
		return nil, err
	}
	if err := a.dir().ClaimCatalog(ctx, db.ID(), db.String(), blob.NewDir(a.data)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// lockServed locks the data directory for a service. One with a catalog in a file has it
// to itself; of those with a catalog in PostgreSQL there may be several, beside verbs.
func (a *app) lockServed(ctx context.Context) (announce func(url string) error, unlock func() error, err error) {
	if a.database == "" {
		return a.dir().LockExclusive(ctx, nil)
	}
	unlock, err = a.dir().LockShared(ctx, a.waiting)
	return func(string) error { return nil }, unlock, err
}

// waiting says why a verb does not go on at once.
func (a *app) waiting(why string) { a.ui.Note("waiting: %s", why) }
