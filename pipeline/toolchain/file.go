package toolchain

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// FileInput hashes the file at path and returns it as an input.
func FileInput(role, name, path string) (Input, error) {
	f, err := OpenFile(path)
	if err != nil {
		return Input{}, err
	}
	defer f.Close()
	return InputOf(role, name, f)
}

// HashOf is HashFile for an open file.
func HashOf(f *os.File) (registry.Digest, int64, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", 0, err
	}
	return hashCopy(io.Discard, f)
}

// InputOf hashes an open file and returns it as an input, whose Path is the name of f.
// [Input.Open] then returns the same file or an error.
func InputOf(role, name string, f *os.File) (Input, error) {
	info, err := f.Stat()
	if err != nil {
		return Input{}, err
	}
	d, size, err := HashOf(f)
	return Input{Role: role, Name: name, Path: f.Name(), Digest: d, Size: size, file: info}, err
}

// Open opens the file of the input. Errors: CodeDigest if its path now leads to another file
// than the one that was hashed, if the file's identity was recorded; those of the operating
// system.
func (in Input) Open() (*os.File, error) {
	f, err := OpenFile(in.Path)
	if err != nil || in.file == nil {
		return f, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(now, in.file) {
		err = registry.Errorf(registry.CodeDigest,
			"input %s/%s: %s was replaced by another file after it was hashed: run again when no program writes to its folder", in.Role, in.Name, in.Path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// HashFile returns the digest and size of a regular file. Errors: those of OpenFile.
func HashFile(path string) (registry.Digest, int64, error) {
	f, err := OpenFile(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return hashCopy(io.Discard, f)
}

// OpenFile opens a regular file for reading. It does not block on a pipe. Errors: CodeInvalid if
// it is not a regular file; those of the operating system.
func OpenFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = registry.Errorf(registry.CodeInvalid, "%s: not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// hashCopy copies r to w and returns the digest and number of the bytes.
func hashCopy(w io.Writer, r io.Reader) (registry.Digest, int64, error) {
	digester := digest.SHA256.Digester()
	n, err := io.Copy(io.MultiWriter(w, digester.Hash()), r)
	return digester.Digest(), n, err
}

// Collect hashes every file under dir, sorted by name. Anything else than directories and
// regular files is an error, also a link: drivers have no reason to create links. Errors:
// CodeInternal for that.
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
