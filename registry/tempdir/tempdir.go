// Package tempdir makes folders for files that a process needs for a while. A process that is killed cannot remove its own, so every
// folder that is made first removes those whose processes are gone.
//
// A process holds a lock on each of its folders, which ends with it. Only a folder that can be locked, and is this user's, is removed.
package tempdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// prefix of the names of all folders in the system's folder for such files.
const prefix = "mlpromote-run-"

// attempts is how often a folder is made again that another process took for one that was left.
const attempts = 100

// Dir is a folder that this process holds.
type Dir struct {
	Path string
	held *os.File
}

// New makes a folder in the system's folder for temporary files. The name says what for: "verify".
func New(name string) (*Dir, error) {
	parent := os.TempDir()
	Sweep(parent, prefix)
	return hold(parent, prefix+name+"-*")
}

// In makes a folder in a folder, with this beginning of its name, which no other files may have.
func In(parent, prefix string) (*Dir, error) {
	Sweep(parent, prefix)
	return hold(parent, prefix+"*")
}

// Remove removes the folder with all that is in it, and lets it go.
func (d *Dir) Remove() error { return errors.Join(os.RemoveAll(d.Path), d.held.Close()) }

// hold makes a folder and locks it. Between the two another process may take it for one that was left.
func hold(parent, pattern string) (*Dir, error) {
	for range attempts {
		path, err := os.MkdirTemp(parent, pattern)
		if err != nil {
			return nil, err
		}
		f, err := open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(path))
		}
		switch err := lock(f); {
		case err == nil && same(f, path):
			return &Dir{path, f}, nil
		case err != nil && !errors.Is(err, unix.EWOULDBLOCK): // a file system without locks, on which nothing can be swept either
			return &Dir{path, f}, nil
		}
		_ = f.Close()
	}
	return nil, &fs.PathError{Op: "make a temporary folder in", Path: parent, Err: unix.EBUSY}
}

// open opens a folder, and no link to one.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

func lock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// same reports whether what is open is still what has the name.
func same(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, named)
}

// Sweep removes the folders in a folder that begin so and whose processes are gone. What cannot be removed is left for the next
// time.
func Sweep(parent, prefix string) {
	f, err := os.Open(parent)
	if err != nil {
		return
	}
	names, _ := f.Readdirnames(-1) // those that could be read
	_ = f.Close()
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			sweep(filepath.Join(parent, name))
		}
	}
}

func sweep(path string) {
	f, err := open(path)
	if err != nil {
		return
	}
	defer f.Close()
	var found unix.Stat_t
	if unix.Fstat(int(f.Fd()), &found) != nil || int64(found.Uid) != int64(os.Geteuid()) || lock(f) != nil || !same(f, path) {
		return
	}
	_ = os.RemoveAll(path)
}
