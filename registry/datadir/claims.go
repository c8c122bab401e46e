package datadir

import (
	"context"
	"iter"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// DatabaseFile is the catalog of a directory with its own catalog.
const DatabaseFile = "registry.db"

// ClaimCatalog binds the directory for good to the catalog id in a PostgreSQL database. A
// collection may delete content that its catalog does not know. name is what to call the
// database in errors; blobs are those in the directory. Errors: CodeInvalid if the directory
// belongs to another catalog, or has content of an unknown one.
func (d Dir) ClaimCatalog(ctx context.Context, id, name string, blobs storage.Blobs) error {
	have, err := d.CatalogID()
	if err != nil || have == id {
		return err
	}
	if have != "" {
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s belongs to the catalog %s, but the catalog in %s is %s", d.Path,
				have, name, id),
			"use the database of this directory, or another --data",
		)
	}
	if d.Has(DatabaseFile) {
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid,
				"%s has its own catalog, in %s; the catalog in %s does not know its content", d.Path, DatabaseFile,
				name),
			"use another --data for the database, or no --database",
		)
	}
	if err := d.refuseUnknown(ctx, CatalogFile, blobs); err != nil {
		return err
	}
	return d.SetCatalogID(id)
}

// ClaimDatabase checks that the directory may have its own catalog. Errors: CodeInvalid if it
// belongs to one in PostgreSQL, or has content of an unknown one.
func (d Dir) ClaimDatabase(ctx context.Context, blobs storage.Blobs) error {
	id, err := d.CatalogID()
	if err != nil {
		return err
	}
	if id != "" {
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid,
				"%s belongs to the catalog %s in a PostgreSQL database, but no database is given", d.Path, id),
			"set MLPROMOTE_DATABASE=postgres://USER@HOST:PORT/NAME, or --database",
		)
	}
	return d.refuseUnknown(ctx, DatabaseFile, blobs)
}

// refuseUnknown refuses a directory that has content but no catalog: a backup, or a directory
// that lost its catalog. A new catalog would not know that content and would delete it.
func (d Dir) refuseUnknown(ctx context.Context, file string, blobs storage.Blobs) error {
	if d.Has(file) {
		return nil
	}
	found, err := holdsAnything(ctx, blobs)
	if err != nil || !found && !d.Has(StorageFile) || d.Has(file) { // another process may have just made it
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid,
			"%s has content but no catalog: a new catalog would not know that content, and would delete it", d.Path),
		"if this is a backup or the catalog was lost, run mlpromote restore; otherwise use another --data",
	)
}

// holdsAnything reports whether there is any content.
func holdsAnything(ctx context.Context, blobs storage.Blobs) (bool, error) {
	next, stop := iter.Pull2(blobs.Digests(ctx))
	defer stop()
	_, err, found := next()
	return found && err == nil, err
}
