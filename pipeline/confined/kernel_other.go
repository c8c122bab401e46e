//go:build !linux

package confined

import (
	"io/fs"
	"os"
)

// kernelView is false: other systems have no such files that we know.
func kernelView(*os.File) bool { return false }

// hasOtherNames is true: each system reports the number of names in another way.
func hasOtherNames(fs.FileInfo) bool { return true }
