//go:build !linux

package pull

import "os"

// swap replaces dir by the staged folder. Only Linux can exchange two folders in one step; on
// other systems a reader may see no folder for an instant.
func swap(staged, dir string) error {
	if err := os.Chmod(staged, 0o755); err != nil {
		return err
	}
	if err := os.Rename(staged, dir); err == nil {
		return nil
	}
	old := staged + ".old"
	if err := os.Rename(dir, old); err != nil {
		return err
	}
	if err := os.Rename(staged, dir); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// isMountPoint cannot be determined on this system. Replacing a mount point fails later.
func isMountPoint(string) (bool, error) { return false, nil }
