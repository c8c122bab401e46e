package sandbox

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// place puts the files where the program will look for them. As links they are the
// user's own files: that is for those whom something keeps from writing to them.
func place(files []File, links bool) error {
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.At), 0o777); err != nil {
			return err
		}
		if err := f.place(links); err != nil {
			return err
		}
	}
	return nil
}

func (f File) place(links bool) error {
	switch {
	case links && !f.Solid:
		return os.Symlink(f.From, f.At)
	case links && os.Link(f.From, f.At) == nil:
		return nil
	}
	return copyFile(f.From, f.At)
}

// copyFile copies by copy_file_range(2) where there is one, which shares the blocks on
// a file system that can.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
