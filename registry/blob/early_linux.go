package blob

import (
	"os"

	"golang.org/x/sys/unix"
)

// startFlush starts writing n bytes to disk and does not wait. It is only an optimization: if
// it fails, the sync at the end writes everything and reports errors.
func startFlush(f *os.File, offset, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, n, unix.SYNC_FILE_RANGE_WRITE)
}
