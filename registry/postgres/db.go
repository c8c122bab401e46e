package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

const (
	// patience bounds every statement and transaction, which take milliseconds, and the
	// search for the outcome of a commit. It is for servers that have gone without a word.
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
	_ registry.Refs         = (*DB)(nil)
	_ registry.Deleter      = (*DB)(nil)
	_ registry.Catalog      = (*DB)(nil)
	_ registry.Intents      = (*DB)(nil)
	_ registry.Listing      = (*DB)(nil)
	_ registry.UploadStates = (*DB)(nil)
	_ registry.Tokens       = (*DB)(nil)
	_ registry.Secrets      = (*DB)(nil)
	_ registry.Leases       = (*DB)(nil)
	_ registry.Idempotency  = (*DB)(nil)
	_ registry.Stock        = (*DB)(nil)
	_ registry.Condemned    = (*DB)(nil)
	_ registry.Removals     = (*DB)(nil)
	_ registry.CatalogClock = (*DB)(nil)
)

// Open opens the database of a URL, postgres://USER@HOST:PORT/NAME, and brings its schema
// up to date. Any number of processes may do so at the same time. What the URL leaves out
// is taken from the environment and files of PostgreSQL's own clients, PGPASSWORD and
// ~/.pgpass among them; pool_max_conns is the number of connections, 16 by default.
// Errors: CodeInvalid for what is no such URL; CodeUnavailable when the database cannot
// be reached or used, or was written by a newer version.
func Open(ctx context.Context, url string) (*DB, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	return open(ctx, config)
}

func open(ctx context.Context, config *pgxpool.Config) (*DB, error) {
	db := &DB{name: nameOf(config.ConnConfig), patience: patience}
	var err error
	if db.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, db.interpretError("open", err)
	}
	if err := db.migrate(ctx); err != nil {
		db.pool.Close()
		return nil, db.interpretError("open", err)
	}
	return db, nil
}

// Close closes the database, when the methods that are running have returned.
func (db *DB) Close() error {
	db.pool.Close()
	return nil
}

// ID is the identity of the catalog in the database. It stays what it is when the
// database is moved, renamed or restored.
func (db *DB) ID() string { return db.id }

// CatalogTime is the time of the server, which all replicas share.
func (db *DB) CatalogTime(ctx context.Context) (time.Time, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	now, err := db.queries().TimeGet(ctx)
	return now.UTC(), db.interpretError("time", err)
}

// String is HOST:PORT/NAME, for messages.
func (db *DB) String() string { return db.name }

// ResetDerived forgets what the records of manifests repeat from the manifests' bytes:
// artifact types, subjects and annotations, and so who refers to whom. Recording every
// manifest again restores them.
func (db *DB) ResetDerived(ctx context.Context) error {
	return db.interpretError("derived records", db.queries().DerivedClear(ctx))
}

// limit ends what takes longer than anything should.
func (db *DB) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, db.patience)
}

// queries is statements that are each a transaction of their own.
func (db *DB) queries() *dbsqlc.Queries { return dbsqlc.New(db.pool) }

// filtered is queries that are planned anew with their arguments: which index serves
// best depends on which filters are set.
func (db *DB) filtered() *dbsqlc.Queries { return dbsqlc.New(planned{db.pool}) }

// planned keeps no plans, which the server would make for any arguments at all.
type planned struct{ *pgxpool.Pool }

// Query sends the query without a name, so that its plan is used once.
func (p planned) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return p.Pool.Query(ctx, sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}
