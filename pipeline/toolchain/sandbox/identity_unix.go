//go:build unix

package sandbox

import (
	"io/fs"
	"syscall"
)

// identity returns numbers that identify a file on this machine, or 0 if they are unknown.
func identity(info fs.FileInfo) (device, inode uint64) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev), s.Ino //nolint:gosec,unconvert,nolintlint // signed on some systems
	}
	return 0, 0
}
