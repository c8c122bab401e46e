//go:build !linux

package toolchain

import "errors"

// clone always fails on this system, so callers use hard links and copies.
func clone(string, string) error { return errors.ErrUnsupported }
