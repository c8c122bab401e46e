package blob

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
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
	fd, err := openFd(path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	if err = retried(func() error { return unix.Fsync(fd) }); err != nil {
		err = &fs.PathError{Op: "sync", Path: path, Err: err}
	}
	return errors.Join(err, unix.Close(fd))
}

// openFd opens a file or a folder. [os.OpenFile] takes five more system calls, to find out that neither can be polled.
func openFd(path string, flags int, mode fs.FileMode) (fd int, err error) {
	err = retried(func() error {
		fd, err = unix.Open(path, flags|unix.O_CLOEXEC, uint32(mode.Perm()))
		return err
	})
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// retried calls a function again while a signal interrupts it.
func retried(do func() error) error {
	for {
		if err := do(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
