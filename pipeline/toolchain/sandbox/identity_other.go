//go:build !unix

package sandbox

import "io/fs"

// identity is not known here.
func identity(fs.FileInfo) (device, inode uint64) { return 0, 0 }
