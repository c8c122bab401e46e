package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// patience limits statements, transactions (which take milliseconds) and the check of a
	// commit. It is for servers that stopped responding.
	patience = 30 * time.Second
	pageSize = 100 // rows that a sequence reads at a time
)

// DB is an open database. Make one with [Open].
type DB struct {
	name     string // for messages: no user, no password
	id       string
	patience time.Duration
	pool     *pgxpool.Pool
}

var (
	_ storage.RepositoryRecords = (*DB)(nil)
	_ storage.Deleter           = (*DB)(nil)
	_ storage.Catalog           = (*DB)(nil)
	_ storage.Intents           = (*DB)(nil)
	_ storage.Listing           = (*DB)(nil)
	_ storage.UploadStates      = (*DB)(nil)
	_ storage.Tokens            = (*DB)(nil)
	_ storage.Secrets           = (*DB)(nil)
	_ storage.Leases            = (*DB)(nil)
	_ storage.Idempotency       = (*DB)(nil)
	_ storage.GCStore           = (*DB)(nil)
	_ storage.MarkStore         = (*DB)(nil)
	_ storage.Removals          = (*DB)(nil)
	_ storage.CatalogClock      = (*DB)(nil)
)

// Close closes the database. It waits for running methods.
func (db *DB) Close() error {
	db.pool.Close()
	return nil
}

// ID returns the identity of the catalog in the database. It stays the same if the database is
// moved, renamed or restored.
func (db *DB) ID() string { return db.id }

// CatalogTime returns the time of the server, which all replicas share.
func (db *DB) CatalogTime(ctx context.Context) (time.Time, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	now, err := db.queries().TimeGet(ctx)
	return now.UTC(), db.interpretError("time", err)
}

// String returns HOST:PORT/NAME, for messages.
func (db *DB) String() string { return db.name }

// limit sets a deadline that is longer than any operation should take.
func (db *DB) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, db.patience)
}

// queries returns statements that each run in their own transaction.
func (db *DB) queries() *dbsqlc.Queries { return dbsqlc.New(db.pool) }

// filtered returns queries that are planned with their arguments, because the best index
// depends on the filters in use.
func (db *DB) filtered() *dbsqlc.Queries { return dbsqlc.New(planned{db.pool}) }

// planned does not use prepared plans, which the server makes for arbitrary arguments.
type planned struct{ *pgxpool.Pool }

// Query sends the query unnamed, so that its plan is used only once.
func (p planned) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return p.Pool.Query(ctx, sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}
