package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	sqlite3 "modernc.org/sqlite"

	"mlpromote.dev/mlpromote/registry"
)

const (
	readers = 32              // database/sql has no queue, so waiting for a connection takes long
	idle    = 5 * time.Minute // after which a connection is closed, with its memory
)

// Open opens the database file at path, creates it if necessary, and upgrades its schema.
// Several processes may do so at the same time. Errors: CodeUnavailable if the file cannot be
// opened or was written by a newer version.
func Open(ctx context.Context, path string) (*DB, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInternal, "open database %s: %w", path, err)
	}
	db := &DB{
		path: path, absolute: absolute, steady: newSteady(), collecting: make(chan struct{}, 1),
	}
	db.writes = newCommitGroup(db.synced, db.unsynced)
	if err := private(absolute); err != nil {
		return nil, registry.Lastingf(registry.CodeUnavailable,
			"open: database %s and its folder must exist and be writable by this user: %w", path, err)
	}
	db.writer, err = pool(absolute, 1, url.Values{
		"_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_txlock": {"immediate"},
	})
	if err == nil {
		db.hasty, err = pool(absolute, 1, url.Values{"_synchronous": {"NORMAL"}})
	}
	if err == nil {
		db.reader, err = pool(absolute, readers, url.Values{"_query_only": {"1"}})
	}
	if err == nil {
		db.steady.versions.pool, err = pool(absolute, 1, url.Values{"_query_only": {"1"}})
	}
	if err == nil {
		err = db.migrate(ctx)
	}
	if err != nil {
		return nil, errors.Join(db.interpretError("open", err), db.Close())
	}
	return db, nil
}

// private creates an empty file at path if there is none. Only its owner can read it, because
// it has keys and the secrets of webhooks. Files that SQLite creates beside it get the same
// mode. private creates it under a temporary name: closing a file would release the locks that
// this process holds on it through another handle.
func private(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // its final name stays
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// pool returns a pool of at most n connections. It opens none of them yet.
func pool(path string, n int, options url.Values) (*prepared, error) {
	options.Set("_busy_timeout", strconv.FormatInt(busyTimeout.Milliseconds(), 10))
	options.Set("_defensive", "1")
	options.Set("_error_rc", "1")
	// Use a URI, so that no character of the path is parsed as an option.
	uri := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: options.Encode()}
	connector, err := sqlite3.NewConnector(uri.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	db.SetConnMaxIdleTime(idle)
	return &prepared{DB: db}, nil
}

// Close closes the database. No method may be running.
func (db *DB) Close() error {
	var errs []error
	if db.steady != nil {
		errs = append(errs, db.steady.versions.Close())
	}
	for _, pool := range []*prepared{db.reader, db.hasty, db.writer} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return db.interpretError("close", errors.Join(errs...))
}
