package validators

import "strconv"

// String returns the size or the symbol.
func (d Dim) String() string {
	if d.Symbol != "" {
		return d.Symbol
	}
	return strconv.FormatInt(d.Size, 10)
}

// Allows reports whether a dimension can have a size: its fixed size, or one in the range of
// its symbol.
func (i Interface) Allows(d Dim, size int64) bool {
	if d.Symbol == "" {
		return size == d.Size
	}
	r := i.Dims[d.Symbol]
	return size >= r.Min && size <= r.Max
}

// OptSize returns the size at which to measure: the fixed size, or the optimum of the symbol.
func (i Interface) OptSize(d Dim) int64 {
	if d.Symbol == "" {
		return d.Size
	}
	return i.Dims[d.Symbol].Opt
}
