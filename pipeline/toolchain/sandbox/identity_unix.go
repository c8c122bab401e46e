//go:build unix

package sandbox

import (
	"io/fs"
	"syscall"
)

// identity tells a file from all others of this machine; 0 if it is unknown.
func identity(info fs.FileInfo) (device, inode uint64) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev), s.Ino //nolint:gosec,unconvert,nolintlint // signed on some systems
	}
	return 0, 0
}
