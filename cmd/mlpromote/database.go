package main

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/postgres"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

// database is where names, heads and history are, and what a service keeps beside them.
type database interface {
	registry.Refs
	registry.Deleter
	registry.Catalog
	registry.Latest
	registry.Listing
	registry.Intents
	registry.UploadStates
	registry.UploadCounts
	registry.Tokens
	registry.Secrets
	registry.Leases
	registry.Idempotency
	registry.Stock
	registry.Condemned
	NodeTypes() registry.NodeTypes
	Runtimes() registry.Runtimes
	Webhooks() registry.Webhooks
	Deliveries() registry.Deliveries
	ResetDerived(ctx context.Context) error
	Close() error
}

const (
	// sqliteFile is the catalog of a data directory that has it to itself.
	sqliteFile = "registry.db"
	// catalogFile has the identity of the catalog in PostgreSQL that knows the content of
	// a data directory.
	catalogFile = "catalog"
)

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
			a.ui.note("other users of this machine can read the password in --database; MLPROMOTE_DATABASE, PGPASSWORD and ~/.pgpass keep it to yourself")
		}
	}
	return nil
}

// openDatabase opens the catalog of the data directory: in PostgreSQL where that is
// configured, else in a file. A directory belongs to one catalog, since what a catalog
// does not know may be collected.
func (a *app) openDatabase(ctx context.Context) (database, error) {
	if err := a.refuseHalf(); err != nil {
		return nil, err
	}
	if a.database == "" {
		return a.openSQLite(ctx)
	}
	db, err := postgres.Open(ctx, a.database)
	if err != nil {
		return nil, err
	}
	if err := a.claim(ctx, db.ID(), db.String()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (a *app) openSQLite(ctx context.Context) (database, error) {
	id, err := a.claimed()
	if err != nil {
		return nil, err
	}
	if id != "" {
		return nil, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s belongs to the catalog %s in a PostgreSQL database, and none is named", a.data, id),
			"MLPROMOTE_DATABASE=postgres://USER@HOST:PORT/NAME, or --database")
	}
	if err := a.refuseUnknown(ctx, sqliteFile); err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, filepath.Join(a.data, sqliteFile))
	if err != nil {
		return nil, err
	}
	return db, nil
}

// refuseUnknown refuses content in a directory that does not have the file of a catalog
// yet. A new catalog would know nothing of it, and collect all of it: a backup, or what is
// left of a directory whose catalog was lost.
func (a *app) refuseUnknown(ctx context.Context, file string) error {
	if a.has(file) {
		return nil
	}
	found, err := holdsAnything(ctx, blob.NewDir(a.data))
	if err != nil || !found && !a.has(storageFile) || a.has(file) { // another process may make it at this moment
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid, "%s has content and no catalog: a new one would know nothing of that content, and collect it", a.data),
		"mlpromote restore, if this is a backup or the catalog was lost; else another --data")
}

// has reports whether the data directory has a file of this name.
func (a *app) has(file string) bool {
	_, err := os.Stat(filepath.Join(a.data, file))
	return err == nil
}

// holdsAnything reports whether there is any content.
func holdsAnything(ctx context.Context, blobs registry.Blobs) (bool, error) {
	next, stop := iter.Pull2(blobs.Digests(ctx))
	defer stop()
	_, err, found := next()
	return found && err == nil, err
}

// claim makes the data directory belong to a catalog, for all time.
func (a *app) claim(ctx context.Context, id, name string) error {
	have, err := a.claimed()
	if err != nil || have == id {
		return err
	}
	if have != "" {
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s belongs to the catalog %s, and the one in %s is %s", a.data, have, name, id),
			"name the database of this directory, or another --data")
	}
	if _, err := os.Stat(filepath.Join(a.data, sqliteFile)); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s has a catalog of its own, in %s, which %s knows nothing of", a.data, sqliteFile, name),
			"another --data for the database, or no --database"))
	}
	if err := a.refuseUnknown(ctx, catalogFile); err != nil {
		return err
	}
	return a.writeClaim(id)
}

// claimed is the catalog that the data directory belongs to, or "" where it belongs to
// none in PostgreSQL.
func (a *app) claimed() (string, error) {
	text, err := os.ReadFile(filepath.Join(a.data, catalogFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// writeClaim lets one of several processes be first, and none see half a file.
func (a *app) writeClaim(id string) error {
	f, err := os.CreateTemp(a.data, catalogFile+"-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // its other name stays
	_, err = f.WriteString(id + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	err = os.Link(f.Name(), filepath.Join(a.data, catalogFile))
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if have, err := a.claimed(); err != nil || have == id {
		return err
	}
	return registry.Errorf(registry.CodeConflict, "%s was given to another catalog at this moment; look at it and try again", a.data)
}

// lockServed locks the data directory for a service. One with a catalog in a file has it
// to itself; of those with a catalog in PostgreSQL there may be several, beside verbs.
func (a *app) lockServed() (announce func(url string) error, unlock func() error, err error) {
	if a.database == "" {
		return lockExclusive(a.data)
	}
	unlock, err = lockShared(a.data)
	return func(string) error { return nil }, unlock, err
}
