package sandbox

import (
	"os"
	"path/filepath"
	"syscall"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// place puts the files at their paths in the sandbox. Links lead to the user's own files, so
// they are only for programs that something keeps from writing to them.
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
		return os.Symlink(f.From, f.At) // Landlock's rules allow only the file itself
	case links && os.Link(f.From, f.At) == nil:
		info, err := os.Lstat(f.At)
		if err != nil {
			return err
		}
		return f.check(identity(info))
	}
	from, err := os.OpenFile(f.From, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if err := f.check(identity(info)); err != nil {
		return err
	}
	return toolchain.CopyFrom(from, f.At)
}
