package keyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
)

// checkFree checks a key's name, and that neither of its files exists, before the expensive
// work.
func checkFree(dir, name string) error {
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, `/\:`) {
		return registry.Errorf(registry.CodeInvalid,
			"key name %q: want a file name without its extension, for example local", name)
	}
	for _, path := range paths(dir, name) {
		if _, err := os.Lstat(path); err == nil {
			return failed(path, fs.ErrExist)
		}
	}
	return nil
}

// paths returns the files of a key, the private one first.
func paths(dir, name string) [2]string {
	return [2]string{filepath.Join(dir, name+".key"), filepath.Join(dir, name+".pub")}
}

// writePair writes the two files of a key. If two processes generate the same name at once,
// creating the private file decides which one succeeds; the other leaves no files.
func writePair(dir, name string, private, public []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return registry.Lastingf(registry.CodeUnavailable, "make folder for keys: %w", err)
	}
	path := paths(dir, name)
	if err := atomicfile.Create(path[0], private, 0o600); err != nil {
		return failed(path[0], err)
	}
	if err := atomicfile.Create(path[1], public, 0o644); err != nil {
		return failed(path[1], errors.Join(err, os.Remove(path[0])))
	}
	return nil
}

// failed returns the error for a file that was not written.
func failed(path string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return registry.Lastingf(registry.CodeConflict,
			"write key %s: %w; keys are never replaced: choose another name or move it away", path, fs.ErrExist)
	}
	return registry.Lastingf(registry.CodeUnavailable, "write key %s: %w", path, err)
}
