package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
)

//go:embed snapshot.sql
var snapshotInto string

// Snapshot copies the database file at path, as of one instant, into a new file. Other
// processes may use the database meanwhile; its schema is not upgraded. Errors: CodeNotFound if
// there is no database; CodeConflict if the new file exists; CodeUnavailable.
func Snapshot(ctx context.Context, path, into string) error {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return registry.Errorf(registry.CodeInternal, "snapshot of %s: %w", path, err)
	}
	if _, err := os.Stat(absolute); errors.Is(err, fs.ErrNotExist) {
		return registry.Errorf(registry.CodeNotFound, "database %s does not exist", path)
	}
	if _, err := os.Lstat(into); err == nil {
		return registry.Lastingf(registry.CodeConflict, "%s already exists", into)
	}
	if err := private(into); err != nil {
		return registry.Errorf(registry.CodeUnavailable, "snapshot of %s: %w", path, err)
	}
	db := &DB{path: path}
	db.writer, err = pool(absolute, 1, url.Values{"mode": {"rw"}})
	if err != nil {
		return db.interpretError("snapshot", err)
	}
	_, err = db.writer.ExecContext(ctx, snapshotInto, into)
	return errors.Join(db.interpretError("snapshot", err), db.Close())
}
