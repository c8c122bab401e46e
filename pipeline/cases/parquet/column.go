package parquet

// Kind is the kind of a column's values.
type Kind int

// The kinds of columns.
const (
	Boolean Kind = iota + 1 // Ints of 0 and 1
	Integer                 // Ints
	Single                  // Floats of 32 bits
	Double                  // Floats
	Text                    // Texts
)

// size is what a value takes in memory, in bytes; of a text without its own.
func (k Kind) size() int64 {
	if k == Text {
		return 16
	}
	return 8
}

// Column is a column of a table. Either Ints, Floats or Texts has the values, row after row.
type Column struct {
	Name   string
	Kind   Kind
	Shape  []int64 // of one row: nil for one value, [3] for lists of 3, [2 3] for 2 lists of 3
	Ints   []int64
	Floats []float64 // NaN if a number is missing
	Texts  []string
}

// values are those of a page or a dictionary, of one kind.
type values struct {
	ints   []int64
	floats []float64
	texts  []string
}

// cut returns the values before at, and after those from there on, for which at becomes 0.
func (v values) cut(at *int) values {
	return values{v.ints[:min(*at, len(v.ints))], v.floats[:min(*at, len(v.floats))], v.texts[:min(*at, len(v.texts))]}
}

func (v values) after(at *int) values {
	n := *at
	*at = 0
	return values{v.ints[min(n, len(v.ints)):], v.floats[min(n, len(v.floats)):], v.texts[min(n, len(v.texts)):]}
}
