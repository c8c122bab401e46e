package toolchain

import (
	"errors"
	"io"
	"os"

	"mlpromote.dev/mlpromote/registry/storage"
)

// Place creates the file to, which must not exist, with the content of from. If possible it
// uses no space: as a clone that shares blocks, else, if the file is large, as a hard link,
// else as a copy. Neither file may be written to afterwards.
func Place(from, to string) error {
	if err := clone(from, to); err == nil || errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.Size() < storage.LinkFrom {
		return CopyFile(from, to)
	}
	if err := os.Link(from, to); err == nil || errors.Is(err, os.ErrExist) {
		return err
	}
	return CopyFile(from, to)
}

// CopyFile creates the file to, which must not exist, as a copy of from. It uses
// copy_file_range(2) if available, which can share blocks. If the copy fails, it is removed.
func CopyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return CopyFrom(in, to)
}

// CopyFrom is CopyFile for an open file.
func CopyFrom(in *os.File, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, remove(to))
	}
	return nil
}
