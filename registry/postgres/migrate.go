package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"mlpromote.dev/mlpromote/migrations"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// migrate upgrades the schema. If the schema is current, this costs one query. If several
// processes find an old schema, one of them upgrades it and the others wait.
func (db *DB) migrate(ctx context.Context) error {
	if done, err := db.current(ctx); done || err != nil {
		return err
	}
	// Use a connection outside of the pool, because the pool may have only one.
	conn, err := pgx.ConnectConfig(ctx, db.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // and releases the lock
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if err := dbsqlc.New(tx).MigrationLock(ctx); err != nil {
		return err
	}
	if done, err := db.current(ctx); done || err != nil {
		return err
	}
	if err := db.up(ctx); err != nil {
		return err
	}
	done, err := db.current(ctx)
	if err == nil && !done { // its steps are noted as done, of this program or of an earlier one
		err = registry.WithHint(registry.Lastingf(registry.CodeUnavailable, "database %s has tables but no schema version", db.name),
			"restore a backup, or give --database an empty database")
	}
	return err
}

// current reports whether the schema is that of this program, and reads the catalog's identity.
// Errors: CodeUnavailable if the schema is newer, or if another program made the table catalog.
func (db *DB) current(ctx context.Context) (bool, error) {
	row, err := db.queries().CatalogGet(ctx)
	var failure *pgconn.PgError
	switch {
	case errors.As(err, &failure) && failure.Code == undefinedTable || errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case failure != nil && failure.Code == undefinedColumn:
		return false, db.unknown("a catalog without schema_version or schema_mark")
	case err != nil:
		return false, err
	case row.SchemaMark != migrations.PostgresMark:
		return false, db.unknown(fmt.Sprintf("schema %d with mark %d, not %d", row.SchemaVersion, row.SchemaMark, migrations.PostgresMark))
	}
	if row.SchemaVersion > migrations.PostgresVersion {
		return false, registry.Lastingf(registry.CodeUnavailable,
			"database %s has schema %d but this program supports schemas up to %d: use the newer version of the program that wrote it",
			db.name, row.SchemaVersion, migrations.PostgresVersion)
	}
	db.id = row.ID
	return row.SchemaVersion == migrations.PostgresVersion, nil
}

// unknown returns the error of a schema that another commit made before release 0.1.0.
func (db *DB) unknown(found string) error {
	return registry.WithHint(registry.Lastingf(registry.CodeUnavailable,
		"database %s was made by a program from before release 0.1.0 (%s), which this program does not convert", db.name, found),
		"give --database an empty database: build, verify and promote again")
}

func (db *DB) up(ctx context.Context) error {
	steps, err := fs.Sub(migrations.Postgres, "postgres")
	if err != nil {
		return err
	}
	pool := stdlib.OpenDBFromPool(db.pool)
	defer func() { _ = pool.Close() }() // returns its connections; the pool stays open
	provider, err := goose.NewProvider(goose.DialectPostgres, pool, steps,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}
