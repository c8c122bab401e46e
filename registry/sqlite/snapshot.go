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

// Snapshot copies the database in the file at path, as it is at one instant, into a file
// that is not there yet. Other processes may use the database meanwhile; its schema stays
// as it is. Errors: CodeNotFound where there is no database; CodeConflict where the other
// file is there; CodeUnavailable.
func Snapshot(ctx context.Context, path, into string) error {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return registry.Errorf(registry.CodeInternal, "snapshot of %s: %w", path, err)
	}
	if _, err := os.Stat(absolute); errors.Is(err, fs.ErrNotExist) {
		return registry.Errorf(registry.CodeNotFound, "no database %s here", path)
	}
	if _, err := os.Lstat(into); err == nil {
		return registry.Lastingf(registry.CodeConflict, "%s is there already", into)
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
