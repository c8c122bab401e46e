// Package atomicfile writes files that a reader sees whole or not at all, also after a crash. Each file is
// written and synced under a temporary name in the same folder, and then renamed or linked.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the file at path, or creates it. Errors: those of the file system. The old file is then
// unchanged, unless the last step failed, which makes the new name durable.
func Write(path string, data []byte, mode fs.FileMode) error {
	return WriteFrom(path, mode, bytesTo(data))
}

// WriteFrom is [Write] for content that write produces.
func WriteFrom(path string, mode fs.FileMode, write func(io.Writer) error) error {
	return place(path, mode, write, os.Rename)
}

// Create creates the file at path. Of several processes that create it, one succeeds. Errors: fs.ErrExist if
// there is a file already; those of the file system.
func Create(path string, data []byte, mode fs.FileMode) error {
	return place(path, mode, bytesTo(data), os.Link)
}

func bytesTo(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// place writes a temporary file and calls into to give it its name. The temporary name is removed in any case.
func place(path string, mode fs.FileMode, write func(io.Writer) error, into func(from, to string) error) (err error) {
	dir, base := filepath.Split(path)
	f, err := os.CreateTemp(filepath.Clean(dir), "."+base+".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if removed := os.Remove(f.Name()); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}()
	err = write(f)
	if err == nil {
		err = errors.Join(f.Chmod(mode), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := into(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Clean(dir))
}

// SyncDir makes the names in a folder durable.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
