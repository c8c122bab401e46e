package toolchain

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// fetch copies an object to path. An object that is gone or damaged is removed and
// reported as CodeNotFound.
func (s *Store) fetch(f stepFile, path string) error {
	object := s.objectPath(f.Digest)
	in, err := os.Open(object)
	if errors.Is(err, fs.ErrNotExist) {
		return registry.Errorf(registry.CodeNotFound, "build cache: %s (%s) is gone", f.Name, f.Digest)
	}
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	d, size, err := hashCopy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, remove(path))
	}
	if d != f.Digest || size != f.Size {
		return errors.Join(remove(path), remove(object),
			registry.Errorf(registry.CodeNotFound, "build cache: %s is damaged: want %s, %d bytes; got %s, %d bytes", f.Name, f.Digest, f.Size, d, size))
	}
	return nil
}

// keep copies a file into the store. An object that is there is replaced all the
// same: it may be the damaged one because of which the step was done again.
func (s *Store) keep(f OutputFile) error {
	in, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	return atomically(s.objectPath(f.Digest), func(w io.Writer) error {
		d, size, err := hashCopy(w, in)
		if err == nil && (d != f.Digest || size != f.Size) {
			return registry.Errorf(registry.CodeDigest, "%s changed after it was made: it was %s, is now %s", f.Name, f.Digest, d)
		}
		return err
	})
}

func seal(record step) ([]byte, error) {
	text, err := json.Marshal(record)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInternal, "record of step %s: %w", record.Key, err)
	}
	return json.Marshal(sealed{text, digest.FromBytes(text)})
}

// unseal reads a record and reports whether it is whole and names no file outside
// the output directory.
func unseal(text []byte) (step, bool) {
	var outer sealed
	if json.Unmarshal(text, &outer) != nil || outer.Sum != digest.FromBytes(outer.Step) {
		return step{}, false
	}
	var record step
	if json.Unmarshal(outer.Step, &record) != nil {
		return step{}, false
	}
	for _, f := range record.Files {
		if !fs.ValidPath(f.Name) || f.Name == "." || f.Digest.Validate() != nil {
			return step{}, false
		}
	}
	return record, true
}

func writeFile(path string, text []byte) error {
	return atomically(path, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(text))
		return err
	})
}

// atomically writes a file under another name, flushes and renames it.
func atomically(path string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, remove(f.Name()))
		}
	}()
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// remove removes a file that may be gone already.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
