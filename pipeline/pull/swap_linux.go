package pull

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// swap replaces dir by the staged folder in one step, so that a reader sees the old folder or
// the new one. rename(2) cannot replace a folder that is not empty, so the two folders are
// exchanged and the old one is removed under the staged name.
func swap(staged, dir string) error {
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

// isMountPoint reports whether something is mounted on a folder, even another folder of the
// same file system.
func isMountPoint(dir string) (bool, error) {
	var info unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS, &info); err != nil {
		return false, &os.PathError{Op: "statx", Path: dir, Err: err}
	}
	if info.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return info.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
	}
	// Kernels before 5.8 do not report this. A bind mount of the same file system is then not
	// detected here, and the exchange fails.
	var above unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, filepath.Dir(dir), unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS, &above); err != nil {
		return false, &os.PathError{Op: "statx", Path: filepath.Dir(dir), Err: err}
	}
	return info.Dev_major != above.Dev_major || info.Dev_minor != above.Dev_minor, nil
}
