package confined

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// linked reports whether a regular file is a hard link to one in a private folder. The path of
// a hard link does not show that. Files that cannot be read there count as the same file.
func (f Folder) linked(info fs.FileInfo) bool {
	if !info.Mode().IsRegular() || !hasOtherNames(info) {
		return false
	}
	for _, private := range f.private {
		found := false
		err := filepath.WalkDir(private, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return unlessGone(err)
			}
			other, err := entry.Info()
			if err == nil && os.SameFile(info, other) {
				found = true
				return filepath.SkipAll
			}
			return unlessGone(err)
		})
		if found || err != nil {
			return true
		}
	}
	return false
}

// unlessGone passes over a file that was removed while the folder was searched.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
