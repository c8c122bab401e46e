package toolchain

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// clone creates the file to, which shares the disk blocks of from until one of them is written.
func clone(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	err = unix.IoctlFileClone(int(out.Fd()), int(in.Fd()))
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, remove(to))
	}
	return nil
}
