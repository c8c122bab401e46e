package parquet

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// builder puts the values of a column together.
type builder struct {
	leaf  leaf
	space *budget

	dictionary *values // of the chunk
	left       int64   // values of the chunk that are still to come
	// The levels of a page, kept for their memory.
	definitions, repetitions []uint8

	rows  int64
	all   values
	gaps  []int   // where values are missing
	shape []int64 // length of the lists at each depth; -1 before one has ended
	open  []int64 // length of each list so far
}

func newBuilder(l leaf, space *budget) *builder {
	b := &builder{leaf: l, space: space, shape: make([]int64, len(l.lists)), open: make([]int64, len(l.lists))}
	for i := range b.shape {
		b.shape[i] = -1
	}
	return b
}

// add adds the values of a page with n entries, of which some may be missing.
func (b *builder) add(v values, n int) error {
	for _, text := range v.texts {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%.40q is no UTF-8", text)
		}
	}
	if len(b.leaf.lists) == 0 && len(v.ints)+len(v.floats)+len(v.texts) == n { // nothing is missing
		b.rows += int64(n)
		if b.rows == int64(n) && len(v.texts) == 0 {
			b.all = v // spares a copy of what may be large
			return nil
		}
		return b.append(v)
	}
	at := 0
	for i := range n {
		if err := b.list(i); err != nil {
			return err
		}
		if len(b.definitions) == 0 || int(b.definitions[i]) == b.leaf.defined {
			at++
			continue
		}
		if !b.leaf.missing || int(b.definitions[i]) < b.leaf.defined-1 {
			return fmt.Errorf("row %d: want a value or a list of values, and something is missing", b.rows-1)
		}
		if err := b.append(v.cut(&at)); err != nil {
			return err
		}
		if err := b.gap(); err != nil {
			return err
		}
		v = v.after(&at)
	}
	return b.append(v.cut(&at))
}

// list counts an entry to the lists that it is in.
func (b *builder) list(i int) error {
	level := 0
	if len(b.leaf.lists) > 0 {
		level = int(b.repetitions[i])
	}
	if level == 0 {
		if err := b.close(0); err != nil {
			return err
		}
		b.rows++
	} else if b.rows == 0 {
		return errors.New("its first value continues a row")
	} else if err := b.close(level); err != nil {
		return err
	}
	for depth := max(level-1, 0); depth < len(b.open); depth++ {
		if int(b.definitions[i]) < b.leaf.lists[depth] {
			return fmt.Errorf("row %d: a list is empty or missing", b.rows-1)
		}
		b.open[depth]++
	}
	return nil
}

// close ends the lists below a depth, which have to be as long as those before.
func (b *builder) close(depth int) error {
	for d := depth; d < len(b.open); d++ {
		if b.open[d] == 0 {
			continue
		}
		if b.shape[d] < 0 {
			b.shape[d] = b.open[d]
		}
		if b.shape[d] != b.open[d] {
			return fmt.Errorf("row %d has a list of %d, and those before have %d: want lists of one length: for cases of several lengths, make a file of each",
				b.rows-1, b.open[d], b.shape[d])
		}
		b.open[d] = 0
	}
	return nil
}

func (b *builder) append(v values) error {
	for _, text := range v.texts {
		if err := b.space.take(int64(len(text))); err != nil {
			return err
		}
	}
	b.all.ints = append(b.all.ints, v.ints...)
	b.all.floats = append(b.all.floats, v.floats...)
	b.all.texts = append(b.all.texts, v.texts...)
	return nil
}

// gap adds a missing value.
func (b *builder) gap() error {
	switch b.leaf.kind {
	case Single, Double:
		b.all.floats = append(b.all.floats, math.NaN())
		return nil
	case Integer:
		if err := b.space.take(16); err != nil { // the place, and a float in place of each integer
			return err
		}
		b.gaps = append(b.gaps, len(b.all.ints))
		b.all.ints = append(b.all.ints, 0)
		return nil
	}
	return fmt.Errorf("row %d: a value is missing: only numbers may be", b.rows-1)
}

// column returns the column.
func (b *builder) column(name string) (Column, error) {
	if err := b.close(0); err != nil {
		return Column{}, err
	}
	c := Column{Name: name, Kind: b.leaf.kind, Ints: b.all.ints, Floats: b.all.floats, Texts: b.all.texts}
	if len(b.shape) > 0 {
		c.Shape = b.shape
	}
	if len(b.gaps) == 0 {
		return c, nil
	}
	c.Kind, c.Ints, c.Floats = Double, nil, make([]float64, len(b.all.ints))
	for i, v := range b.all.ints {
		c.Floats[i] = float64(v)
		if int64(c.Floats[i]) != v {
			return Column{}, fmt.Errorf("%d is missing a place among floats, which the column becomes because numbers are missing", v)
		}
	}
	for _, i := range b.gaps {
		c.Floats[i] = math.NaN()
	}
	return c, nil
}
