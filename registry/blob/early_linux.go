package blob

import (
	"os"

	"golang.org/x/sys/unix"
)

// startFlush starts writing n bytes to disk and does not wait. Nothing relies on it: if
// it cannot, the sync at the end has all to do and says what is wrong.
func startFlush(f *os.File, offset, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, n, unix.SYNC_FILE_RANGE_WRITE)
}
