package sandbox

import (
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
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
	return toolchain.CopyFile(f.From, f.At)
}
