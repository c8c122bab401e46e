//go:build !linux

package sqlite

import (
	"fmt"
	"os"
	"syscall"
)

// instanceOf identifies a file by its inode, which differs in a copy.
func instanceOf(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("file:%d", stat.Ino), nil
	}
	return "file", nil
}
