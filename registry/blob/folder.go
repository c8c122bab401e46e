package blob

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// makeFolder creates path and its missing parents and makes their entries durable, once per
// folder and process.
func (dir *Dir) makeFolder(path string) error {
	if _, done := dir.synced.Load(path); done {
		return nil
	}
	parent := filepath.Dir(path)
	if path == filepath.Clean(dir.path) {
		if err := makeRoot(path); err != nil {
			return err
		}
	} else {
		if err := dir.makeFolder(parent); err != nil {
			return err
		}
		if err := os.Mkdir(path, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := syncFolder(parent); err != nil {
			return err
		}
	}
	dir.synced.Store(path, true)
	return nil
}

// makeRoot creates the store's own folder. It does not change existing folders above it, which
// may belong to other programs.
func makeRoot(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := makeRoot(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(parent)
}

// syncFolder makes the entries of a folder durable.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
