package sqlite

import (
	"context"
	"errors"
	"time"

	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// busyTimeout is how long a writer waits for the writers of other processes. Each of them
	// holds the lock for one commit, a few milliseconds.
	busyTimeout = 10 * time.Second
	pageSize    = 100 // rows that a sequence reads at a time
)

// DB is an open database. Make one with [Open].
type DB struct {
	Now storage.Clock // clock of the catalog; nil means time.Now; set it before use

	path       string
	absolute   string
	writer     *prepared     // one connection, because SQLite has one writer at a time
	hasty      *prepared     // writes without waiting for the disk
	reader     *prepared     // opens connections when needed
	writes     *commitGroup  // those of pushes
	steady     *steady       // has its own connection
	collecting chan struct{} // full while a collector holds the lock
}

var (
	_ storage.RepositoryRecords = (*DB)(nil)
	_ storage.Catalog           = (*DB)(nil)
	_ storage.Intents           = (*DB)(nil)
	_ storage.UploadStates      = (*DB)(nil)
	_ storage.Listing           = (*DB)(nil)
	_ storage.CatalogClock      = (*DB)(nil)
)

// now returns the time of the catalog.
func (db *DB) now() time.Time {
	if db.Now == nil {
		return time.Now()
	}
	return db.Now()
}

// CatalogTime returns the time of this machine, to the microsecond.
func (db *DB) CatalogTime(ctx context.Context) (time.Time, error) {
	return db.now().UTC().Truncate(time.Microsecond), ctx.Err()
}

// read returns queries that only read, each on its own snapshot.
func (db *DB) read() *dbsqlc.Queries { return dbsqlc.New(db.reader) }

// write returns queries that write, each in its own transaction.
func (db *DB) write() *dbsqlc.Queries { return dbsqlc.New(db.writer) }

// transaction runs change in one transaction. It holds the write lock from the beginning, so
// what change reads stays valid until the commit.
func (db *DB) transaction(ctx context.Context, change func(*dbsqlc.Queries) error) error {
	return inTransaction(ctx, db.writer, change)
}

// snapshot runs look on a snapshot of one instant.
func (db *DB) snapshot(ctx context.Context, look func(*dbsqlc.Queries) error) error {
	return inTransaction(ctx, db.reader, look)
}

func inTransaction(ctx context.Context, pool *prepared, do func(*dbsqlc.Queries) error) error {
	pool.prepareWanted(ctx)
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(dbsqlc.New(preparedTx{tx, pool})); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// synced makes changes durable in one transaction.
func (db *DB) synced(ctx context.Context, changes []change) error {
	defer db.steady.commits.Add(1)
	return db.transaction(ctx, func(q *dbsqlc.Queries) error { return apply(ctx, q, changes) })
}

// unsynced makes changes in one transaction that does not wait for the disk. Every pushed blob
// has several of them, and a power failure may undo them. A later commit makes them durable. It
// holds the connection of the writer, so that changes of this process do not poll for the lock
// of the database.
func (db *DB) unsynced(ctx context.Context, changes []change) (err error) {
	defer db.steady.commits.Add(1)
	turn, err := db.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.Close()) }()
	if len(changes) == 1 { // of one statement that writes, which needs no BEGIN and COMMIT
		return changes[0](ctx, dbsqlc.New(db.hasty))
	}
	return inTransaction(ctx, db.hasty, func(q *dbsqlc.Queries) error { return apply(ctx, q, changes) })
}
