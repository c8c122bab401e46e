//go:build !linux

package toolchain

import "errors"

// clone is left to hard links and copies.
func clone(string, string) error { return errors.ErrUnsupported }
