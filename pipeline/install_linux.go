package pipeline

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// install puts the staged folder in place of dir in one step, so that a reader sees
// the old folder or the new one. rename(2) cannot replace a folder that is not
// empty, so both change places and the old one is removed under the staged name.
func install(staged, dir string) error {
	if err := os.Chmod(staged, 0o755); err != nil {
		return err
	}
	err := os.Rename(staged, dir)
	if err != nil {
		if err = unix.Renameat2(unix.AT_FDCWD, staged, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE); err != nil {
			return &os.LinkError{Op: "exchange", Old: staged, New: dir, Err: err}
		}
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	return parent.Sync()
}
