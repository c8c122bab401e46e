package toolchain

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
)

// fetch puts an object at path. It removes a damaged object. A missing or damaged object gives
// CodeNotFound.
func (s *Store) fetch(f stepFile, path string) error {
	object := s.objectPath(f.Digest)
	d, size, err := HashFile(object)
	if errors.Is(err, fs.ErrNotExist) {
		return registry.Errorf(registry.CodeNotFound, "build cache: %s (%s) is missing", f.Name, f.Digest)
	}
	if err != nil {
		return err
	}
	if d != f.Digest || size != f.Size {
		return errors.Join(remove(object),
			registry.Errorf(registry.CodeNotFound,
				"build cache: %s is damaged: want %s, %d bytes; got %s, %d bytes", f.Name, f.Digest, f.Size, d, size))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return Place(object, path)
}

// keep copies a file into the store. It replaces an existing object, which may be the damaged
// one because of which the step was done again.
func (s *Store) keep(f OutputFile) error {
	d, size, err := HashFile(f.Path)
	if err != nil {
		return err
	}
	if d != f.Digest || size != f.Size {
		return registry.Errorf(registry.CodeDigest, "%s changed after it was made: it was %s, is now %s", f.Name, f.Digest, d)
	}
	path := s.objectPath(f.Digest)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	staged := path + ".tmp-" + uuid.NewString()
	if err := Place(f.Path, staged); err != nil {
		return err
	}
	if err := flush(staged); err != nil {
		return errors.Join(err, remove(staged))
	}
	return os.Rename(staged, path)
}

// flush waits until a file is on disk.
func flush(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func writeFile(path string, text []byte) error {
	return atomically(path, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(text))
		return err
	})
}

// atomically writes a file that readers see complete or not at all. It creates the folder if
// necessary.
func atomically(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return atomicfile.WriteFrom(path, 0o600, write)
}

// remove removes a file that may not exist.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
