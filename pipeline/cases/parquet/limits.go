package parquet

import "errors"

// Limits bound the amount that is read from a file. The zero value stands for [DefaultLimits].
type Limits struct {
	Footer  int64 // bytes of the footer
	Items   int   // elements of all lists in the footer
	Columns int   // that are read
	Rows    int64
	// Bytes bounds the decompressed size of all pages, and separately the memory of the columns.
	Bytes int64
}

// DefaultLimits let a table take a GiB of memory.
func DefaultLimits() Limits {
	return Limits{Footer: 64 << 20, Items: 1 << 20, Columns: 1 << 14, Rows: 1 << 27, Bytes: 1 << 30}
}

func (l Limits) orDefault() Limits {
	if l == (Limits{}) {
		return DefaultLimits()
	}
	return l
}

// Bounds that no file needs to exceed.
const (
	maxDepth   = 32 // of structures in the footer
	maxNesting = 4  // of lists in a column
	maxPage    = 256 << 20
	maxName    = 1 << 10 // bytes of the name of a column
)

// budget is how many bytes may still be taken.
type budget int64

var errSpace = errors.New("its values take more memory than a table may: use .npz, or fewer rows")

func (b *budget) take(n int64) error {
	if n < 0 || n > int64(*b) {
		return errSpace
	}
	*b -= budget(n)
	return nil
}
