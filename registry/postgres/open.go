package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Open opens the database of a URL, postgres://USER@HOST:PORT/NAME, and upgrades its schema.
// Several processes may do so at the same time. Missing parts of the URL come from the
// environment and files of PostgreSQL's clients, such as PGPASSWORD and ~/.pgpass.
// pool_max_conns is the number of connections, 16 by default. Errors: CodeInvalid for an
// invalid URL; CodeUnavailable if the database is unreachable, unusable or written by a newer
// version.
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
