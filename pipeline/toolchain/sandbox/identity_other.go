//go:build !unix

package sandbox

import "io/fs"

// identity is not implemented for this system.
func identity(fs.FileInfo) (device, inode uint64) { return 0, 0 }
