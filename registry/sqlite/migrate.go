package sqlite

import (
	"context"
	_ "embed"
	"io/fs"

	"github.com/pressly/goose/v3"

	"mlpromote.dev/mlpromote/migrations"
	"mlpromote.dev/mlpromote/registry"
)

//go:embed schema_version.sql
var schemaVersion string

// migrate upgrades the schema. If the schema is current, this costs one read of the file's
// header. It uses goose, which reads tables and files, only to upgrade.
func (db *DB) migrate(ctx context.Context) error {
	var failed error
	// Another process may run the same step at the same moment. A step is one transaction, so one
	// of the two succeeds; the other fails without effect and checks again. With every failure the
	// schema has advanced by a step.
	for range migrations.SQLiteVersion + 2 {
		version, mark, err := db.version(ctx)
		switch {
		case err != nil:
			return err
		case version != 0 && mark != migrations.SQLiteMark:
			return registry.WithHint(registry.Lastingf(registry.CodeUnavailable,
				"database %s was made by a program from before release 0.1.0 (schema %d with mark %#x, not %#x), which this program does not convert",
				db.path, version, mark, migrations.SQLiteMark),
				"make a new data directory: build, verify and promote again")
		case version == migrations.SQLiteVersion:
			return nil
		case version > migrations.SQLiteVersion:
			return registry.Lastingf(registry.CodeUnavailable,
				"database %s has schema %d but this program supports schemas up to %d: use the newer version of the program that wrote it",
				db.path, version, migrations.SQLiteVersion)
		}
		if failed = db.up(ctx); failed != nil {
			continue
		}
		switch version, _, err := db.version(ctx); {
		case err != nil:
			return err
		case version < migrations.SQLiteVersion: // its steps are noted as done, of this program or of an earlier one
			return registry.WithHint(registry.Lastingf(registry.CodeUnavailable,
				"database %s has tables but no schema version (%d): a copy by a dump loses that", db.path, version),
				"restore a backup (mlpromote restore), or make a new data directory")
		}
	}
	return failed
}

// version returns the number of the last step that the database has, and the mark of its schema.
func (db *DB) version(ctx context.Context) (version, mark int, err error) {
	err = db.writer.QueryRowContext(ctx, schemaVersion).Scan(&version, &mark)
	return version, mark, err
}

func (db *DB) up(ctx context.Context) error {
	steps, err := fs.Sub(migrations.SQLite, "sqlite")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db.writer.DB, steps,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}
