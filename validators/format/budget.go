package format

import (
	"archive/zip"
	"errors"
	"io"
)

const (
	// zipDirBytes limits the size of an archive's directory, which is also the memory that
	// listing needs.
	zipDirBytes = 32 << 20
	// zipReadBytes limits what is read of an archive in all.
	zipReadBytes = 1 << 30
)

var errBudget = errors.New("too many bytes")

// budget fails after left bytes were read through it.
type budget struct {
	r    io.ReaderAt
	left int64
}

func (b *budget) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errBudget
	}
	return b.r.ReadAt(p, off)
}

// listZip reads the directory of a zip archive, and at most [zipDirBytes] of it and its entries.
func listZip(r io.ReaderAt, size int64) (*zip.Reader, error) {
	return zip.NewReader(&budget{r: r, left: zipDirBytes}, size)
}
