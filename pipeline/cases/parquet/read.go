package parquet

import (
	"fmt"
	"io"
	"runtime/debug"
)

// Table is the content of a file.
type Table struct {
	Names   []string // of all columns of the file, in their order
	Rows    int
	Columns []Column // those that were asked for, in their order
}

// Described is a column of a file that was not read.
type Described struct {
	Name string
	List bool // its rows are lists
}

// Look lists the columns of a file. Errors are as of [Read].
func Look(r io.ReaderAt, size int64, limits Limits) (all []Described, err error) {
	err = guarded(func() error {
		_, tops, err := open(r, size, limits)
		for _, c := range tops {
			all = append(all, Described{c.name, len(c.leaf.lists) > 0})
		}
		return err
	})
	return all, err
}

// Read reads the columns of a file for which want is true. Errors describe the mistake in the file, and do not name it.
func Read(r io.ReaderAt, size int64, limits Limits, want func(name string) bool) (Table, error) {
	var t Table
	err := guarded(func() error { return t.read(r, size, limits, want) })
	return t, err
}

// guarded turns panics into errors.
func guarded(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be read: %v", p)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // decompressors have code in assembly
	return do()
}

func open(r io.ReaderAt, size int64, limits Limits) (footer, []top, error) {
	f, err := readFooter(r, size, limits.orDefault())
	if err != nil {
		return footer{}, nil, err
	}
	tops, err := f.columns()
	return f, tops, err
}

func (t *Table) read(r io.ReaderAt, size int64, limits Limits, want func(name string) bool) error {
	f, tops, err := open(r, size, limits)
	if err != nil {
		return err
	}
	limits = limits.orDefault()
	t.Rows = int(f.rows)
	d, err := newDecompressor(limits.Bytes)
	if err != nil {
		return err
	}
	defer d.close()
	space := budget(limits.Bytes)
	for _, c := range tops {
		t.Names = append(t.Names, c.name)
		if !want(c.name) {
			continue
		}
		if len(t.Columns) >= limits.Columns {
			return fmt.Errorf("it has more than %d columns", limits.Columns)
		}
		err := c.err
		var read Column
		if err == nil {
			read, err = f.read(c, source{r, size, d, &space})
		}
		if err != nil {
			return fmt.Errorf("column %q: %w", c.name, err)
		}
		t.Columns = append(t.Columns, read)
	}
	return nil
}

// read reads the chunks of a column.
func (f footer) read(c top, s source) (Column, error) {
	b := newBuilder(c.leaf, s.space)
	for _, group := range f.groups {
		if err := group.chunks[c.leaf.index].read(b, s); err != nil {
			return Column{}, err
		}
	}
	if b.rows != f.rows {
		return Column{}, fmt.Errorf("it has %d rows, and the file declares %d", b.rows, f.rows)
	}
	return b.column(c.name)
}
