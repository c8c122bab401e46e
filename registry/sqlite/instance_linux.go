package sqlite

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// instanceOf identifies a file by its inode and, if the file system supports it, its birth
// time. A copy has others. Writing to the file or mounting its disk again keeps both, but may
// change the device number.
func instanceOf(path string) (string, error) {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &stat); err != nil {
		return "", fmt.Errorf("stat %s: %w", path, err)
	}
	if stat.Mask&unix.STATX_BTIME == 0 {
		return fmt.Sprintf("file:%d", stat.Ino), nil
	}
	return fmt.Sprintf("file:%d@%d.%09d", stat.Ino, stat.Btime.Sec, stat.Btime.Nsec), nil
}
