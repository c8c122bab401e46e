package bound

import (
	"archive/zip"
	"errors"
	"io"
)

const (
	// ZipDirectoryBytes limits the size of an archive's directory, which is also the memory that
	// listing needs.
	ZipDirectoryBytes = 32 << 20
	// ZipBytes limits the bytes that are read from an archive in all.
	ZipBytes = 1 << 30
)

// ErrBudget is the error of a [Budget] that is used up.
var ErrBudget = errors.New("too many bytes")

// Budget is a reader that fails with [ErrBudget] after Left bytes.
type Budget struct {
	R    io.ReaderAt
	Left int64
}

// ReadAt reads from R. Errors: ErrBudget, and those of R.
func (b *Budget) ReadAt(p []byte, off int64) (int, error) {
	if b.Left -= int64(len(p)); b.Left < 0 {
		return 0, ErrBudget
	}
	return b.R.ReadAt(p, off)
}

// Zip reads the directory of a zip archive, and at most [ZipDirectoryBytes] of it and its entries.
func Zip(r io.ReaderAt, size int64) (*zip.Reader, error) {
	return zip.NewReader(&Budget{R: r, Left: ZipDirectoryBytes}, size)
}
