package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
)

// The files of a data directory that record its catalog, its storage and its use.
const (
	// CatalogFile has the identity of the catalog in PostgreSQL that the directory belongs
	// to. A directory with its own catalog has no such file.
	CatalogFile = "catalog"
	// StorageFile names the bucket that has the content of the directory.
	StorageFile = "storage"
	// RestoringFile exists while a restore runs, and after one that did not finish.
	RestoringFile = "restoring"
	// LockFile is the file that processes lock while they use the directory.
	LockFile = "lock"
)

// Dir is a data directory.
type Dir struct {
	Path string
}

// file is the path of a file in the directory.
func (d Dir) file(name string) string { return filepath.Join(d.Path, name) }

// Has reports whether the directory has a file of this name.
func (d Dir) Has(name string) bool {
	_, err := os.Stat(d.file(name))
	return err == nil
}

// line reads a file of one line. Without the file it returns "".
func (d Dir) line(name string) (string, error) {
	text, err := os.ReadFile(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// interpret converts the error of a full disk to one with CodeFull.
func (d Dir) interpret(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return registry.Errorf(registry.CodeFull,
			"no space is left in %s; nothing was changed; free space there and try again: %w", d.Path, err)
	}
	return err
}

// create creates a file of the directory. Errors: fs.ErrExist if there is one already.
func (d Dir) create(name string, text []byte) error {
	return d.interpret(atomicfile.Create(d.file(name), text, 0o600))
}

// replace replaces a file of the directory, or creates it.
func (d Dir) replace(name string, text []byte) error {
	return d.interpret(atomicfile.Write(d.file(name), text, 0o600))
}

// CatalogID is the identity of the catalog in PostgreSQL that the directory belongs to, or "".
func (d Dir) CatalogID() (string, error) { return d.line(CatalogFile) }

// SetCatalogID records the catalog that the directory belongs to. If several processes try at
// once, the first succeeds, and readers never see a partial file. Errors: CodeConflict if the
// directory belongs to another catalog.
func (d Dir) SetCatalogID(id string) error {
	err := d.create(CatalogFile, []byte(id+"\n"))
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if have, err := d.CatalogID(); err != nil || have == id {
		return err
	}
	return registry.Errorf(registry.CodeConflict,
		"another process just assigned %s to another catalog; check which one, and try again", d.Path)
}

// Storage returns the URL of the bucket that has the content of the directory, or "" without a
// bucket.
func (d Dir) Storage() (string, error) { return d.line(StorageFile) }

// SetStorage records the bucket that has the content of the directory from now on.
func (d Dir) SetStorage(name string) error {
	return d.replace(StorageFile, []byte(name+"\n"))
}

// RefuseOtherStorage returns an error if name is not the place of the directory's content,
// because a catalog finds its content in only one place. An empty name means the directory
// itself. It reports whether that place is recorded.
func (d Dir) RefuseOtherStorage(name string) (recorded bool, err error) {
	have, err := d.Storage()
	switch {
	case err != nil:
		return false, err
	case have == name:
		return true, nil
	case have != "":
		return false, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "the content of %s is in %s", d.Path, have),
			"set MLPROMOTE_STORAGE=%s, with its endpoint and region, or --storage", have)
	}
	if d.Has("blobs") {
		return false, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s has its own content in blobs/, which is not in %s", d.Path, name),
			"use another --data for the bucket, or no --storage")
	}
	return false, nil
}
