package toolchain

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// FileInput hashes the file at path and names it.
func FileInput(role, name, path string) (Input, error) {
	d, size, err := HashFile(path)
	if err != nil {
		return Input{}, err
	}
	return Input{Role: role, Name: name, Path: path, Digest: d, Size: size}, nil
}

// HashFile is the digest and size of a regular file. Errors: CodeInvalid for what
// is there and is none; others as the operating system gives them.
func HashFile(path string) (registry.Digest, int64, error) {
	if err := regular(path); err != nil {
		return "", 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return hashCopy(io.Discard, f)
}

// regular refuses what is no plain file, so that no open blocks on a pipe.
func regular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return registry.Errorf(registry.CodeInvalid, "%s: not a regular file", path)
	}
	return nil
}

// hashCopy copies r to w and gives the digest and number of the bytes.
func hashCopy(w io.Writer, r io.Reader) (registry.Digest, int64, error) {
	digester := digest.SHA256.Digester()
	n, err := io.Copy(io.MultiWriter(w, digester.Hash()), r)
	return digester.Digest(), n, err
}

// Collect hashes every file under dir, sorted by name. What is neither a
// directory nor a regular file is refused, links included: a driver has no reason
// to leave one. Errors: CodeInternal for that.
func Collect(dir string) ([]OutputFile, error) {
	var files []OutputFile
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() {
			return registry.Errorf(registry.CodeInternal, "output %s is not a regular file", name)
		}
		d, size, err := HashFile(path)
		files = append(files, OutputFile{Name: filepath.ToSlash(name), Path: path, Digest: d, Size: size})
		return err
	})
	return files, err
}
