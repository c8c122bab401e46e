package parquet

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// leaf is a column of the file as it is stored, below one column of the table.
type leaf struct {
	kind     Kind
	unsigned bool
	physical int64
	index    int // among the chunks of a row group
	// defined is the definition level of a value. Below it, something is missing.
	defined int
	lists   []int // definition levels from which each list around the value has an element
	missing bool  // the value itself may be missing
}

// top is a column of the table: one leaf, or an error that says why it cannot be read.
type top struct {
	name string
	leaf leaf
	err  error
}

// walker walks over the schema, a tree in depth-first order.
type walker struct {
	schema []element
	at     int
	leaves int
}

// columns lists the columns of a table.
func (f footer) columns() ([]top, error) {
	if len(f.schema) == 0 || f.schema[0].physical >= 0 {
		return nil, errors.New("it has no schema")
	}
	w := walker{schema: f.schema, at: 1}
	var tops []top
	names := make(map[string]bool)
	for range f.schema[0].children {
		if w.at >= len(w.schema) {
			return nil, errors.New("its schema lacks columns")
		}
		c := top{name: w.schema[w.at].name}
		if !utf8.ValidString(c.name) || c.name == "" || len(c.name) > maxName {
			return nil, fmt.Errorf("column %d is called %.40q: want a name of at most %d bytes of UTF-8", len(tops), c.name, maxName)
		}
		if names[c.name] {
			return nil, fmt.Errorf("two columns are called %q", c.name)
		}
		names[c.name] = true
		c.err = w.column(&c.leaf, 0, false)
		if w.at > len(w.schema) {
			return nil, errors.New("its schema lacks columns")
		}
		tops = append(tops, c)
	}
	for _, g := range f.groups {
		if len(g.chunks) != w.leaves || w.at != len(w.schema) {
			return nil, fmt.Errorf("its row groups have %d columns, and its schema has %d", len(g.chunks), w.leaves)
		}
	}
	return tops, nil
}

// column reads an element and those below it. inList says that the one above is a list.
func (w *walker) column(l *leaf, depth int, inList bool) (err error) {
	if w.at >= len(w.schema) || depth > maxDepth {
		w.at = len(w.schema) + 1
		return errors.New("its schema is broken")
	}
	e := w.schema[w.at]
	w.at++
	switch e.repetition {
	case required:
	case optional:
		l.defined++
	case repeated:
		l.defined++
		l.lists = append(l.lists, l.defined)
	default:
		err = fmt.Errorf("its repetition %d is unknown", e.repetition)
	}
	if e.physical >= 0 {
		l.index, l.physical, l.unsigned, l.missing = w.leaves, e.physical, e.unsigned, e.repetition == optional
		w.leaves++
		if len(l.lists) > maxNesting {
			return fmt.Errorf("it has lists in lists, %d deep: want at most %d", len(l.lists), maxNesting)
		}
		if err == nil {
			l.kind, err = e.kind()
		}
		return err
	}
	isList := e.logical == logicalList || e.converted == convertedList
	for i := range e.children {
		below := *l
		below.lists = slices.Clone(l.lists)
		if wrong := w.column(&below, depth+1, isList); err == nil {
			err = wrong
		}
		if w.at > len(w.schema) {
			return err
		}
		if i == 0 {
			*l = below
		}
	}
	if e.children != 1 || !isList && !(e.repetition == repeated && inList) {
		return errors.New("it is a struct or a map: want a number, a text or a list of numbers; make columns of its members")
	}
	return err
}

// kind is what the values of a column are.
func (e element) kind() (Kind, error) {
	plain := e.logical == 0 && e.converted == -1
	switch e.physical {
	case physicalBoolean:
		return e.only(plain, Boolean)
	case physicalInt32, physicalInt64:
		return e.only(plain || e.logical == logicalInteger || e.logical == 0 && e.converted >= convertedUint8 && e.converted <= convertedInt64, Integer)
	case physicalFloat:
		return e.only(plain, Single)
	case physicalDouble:
		return e.only(plain, Double)
	case physicalBytes:
		return e.only(plain || e.text(), Text)
	}
	return e.only(false, 0)
}

// text reports whether bytes are annotated as text.
func (e element) text() bool {
	if e.logical != 0 {
		return e.logical == logicalString || e.logical == logicalEnum || e.logical == logicalJSON
	}
	return e.converted == convertedUTF8 || e.converted == convertedEnum || e.converted == convertedJSON
}

func (element) only(known bool, kind Kind) (Kind, error) {
	if !known {
		return 0, errors.New("its type is not read: want numbers, booleans or texts; " +
			"dates and decimals have to become the numbers that the model was trained on")
	}
	return kind, nil
}
