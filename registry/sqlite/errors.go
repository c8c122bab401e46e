package sqlite

import (
	"context"
	"database/sql"
	"errors"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
)

// interpretError converts a failure of the database to an error of the ports.
// It returns nil and errors with a code unchanged.
func (db *DB) interpretError(subject string, err error) error {
	var coded *registry.Error
	var failure *driver.Error
	switch {
	case err == nil, errors.As(err, &coded):
		return err
	case errors.Is(err, sql.ErrNoRows), errors.Is(err, catalog.ErrNoRow):
		return registry.Errorf(registry.CodeNotFound, "%s: not found", subject)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), !errors.As(err, &failure):
		return registry.Errorf(registry.CodeOf(err), "%s: database %s: %w", subject, db.path, err)
	}
	err = db.interpretFailure(subject, failure, err)
	switch registry.CodeOf(err) {
	case registry.CodeUnavailable:
		return registry.ForClients(err, "%s: the database is unavailable; try again", subject)
	case registry.CodeFull:
		return registry.ForClients(err,
			"%s: no space is left for the database; nothing has changed; free space there and try again", subject)
	}
	return err
}

// interpretFailure converts errors that SQLite reports.
func (db *DB) interpretFailure(subject string, failure *driver.Error, err error) error {
	if failure.Code() == sqlite3.SQLITE_IOERR_SHMSIZE { // readers also need space, for the index of the log
		return registry.Errorf(registry.CodeFull,
			"%s: no space is left beside database %s, and reading needs a little too; free space there and try again: %w",
			subject, db.path, err)
	}
	// The low byte is the kind of failure; the others refine it.
	switch failure.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return registry.Errorf(registry.CodeUnavailable,
			"%s: other processes have kept database %s locked for %v; try again when they are done: %w",
			subject, db.path, busyTimeout, err)
	case sqlite3.SQLITE_FULL:
		return registry.Errorf(registry.CodeFull,
			"%s: no space is left for database %s; nothing has changed; free space there and try again: %w",
			subject, db.path, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return registry.Lastingf(registry.CodeUnavailable,
			"%s: database %s and its folder must exist and be writable by this user: %w", subject, db.path, err)
	case sqlite3.SQLITE_CONSTRAINT:
		return registry.Errorf(registry.CodeConflict,
			"%s: the database already has a different value; nothing has changed: %w", subject, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return registry.Errorf(registry.CodeInternal,
			"%s: %s is not a database or is damaged; restore it from a backup: %w", subject, db.path, err)
	}
	return registry.Errorf(registry.CodeInternal, "%s: database %s: %w", subject, db.path, err)
}
