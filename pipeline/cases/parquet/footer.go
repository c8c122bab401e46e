package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Physical types.
const (
	physicalBoolean = iota
	physicalInt32
	physicalInt64
	physicalInt96
	physicalFloat
	physicalDouble
	physicalBytes
	physicalFixed
)

// Repetitions.
const (
	required = iota
	optional
	repeated
)

// Converted types, which older writers give in place of logical ones.
const (
	convertedUTF8   = 0
	convertedList   = 3
	convertedEnum   = 4
	convertedUint8  = 11
	convertedUint64 = 14
	convertedInt64  = 18
	convertedJSON   = 19
)

// footer is what is read of the structure FileMetaData.
type footer struct {
	schema []element
	rows   int64
	groups []rowGroup
	locked bool // encrypted
}

// element is SchemaElement: a column, or a group of columns.
type element struct {
	name       string
	physical   int64 // the type; -1 of a group
	repetition int64
	children   int64
	converted  int64   // -1 for none
	logical    logical // 0 for none
	unsigned   bool
}

type rowGroup struct {
	rows   int64
	chunks []chunk
}

// chunk is ColumnChunk with its ColumnMetaData.
type chunk struct {
	elsewhere  bool // in another file, or encrypted
	physical   int64
	codec      int64
	values     int64
	compressed int64
	data       int64 // offset of the first data page
	dictionary int64 // offset of the dictionary; 0 for none
}

// logical is the number of a field of LogicalType.
type logical int64

const (
	logicalString  logical = 1
	logicalList    logical = 3
	logicalEnum    logical = 4
	logicalInteger logical = 10
	logicalJSON    logical = 12
)

const magic = "PAR1"

// readFooter reads the footer: its length and the magic number are the last 8 bytes of a file.
func readFooter(r io.ReaderAt, size int64, limits Limits) (footer, error) {
	var head, tail [8]byte
	if size < 12 {
		return footer{}, errors.New("it is too short for a Parquet file")
	}
	if _, err := r.ReadAt(head[:4], 0); err != nil {
		return footer{}, err
	}
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return footer{}, err
	}
	switch {
	case string(tail[4:]) == "PARE":
		return footer{}, errors.New("it is encrypted: write it without encryption")
	case string(head[:4]) != magic || string(tail[4:]) != magic:
		return footer{}, fmt.Errorf("it does not begin and end with %s, so it is no Parquet file, or only a part of one", magic)
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if length > size-12 || length > limits.Footer {
		return footer{}, fmt.Errorf("its footer has %d bytes: there is room for %d", length, min(size-12, limits.Footer))
	}
	data := make([]byte, length)
	if _, err := r.ReadAt(data, size-8-length); err != nil {
		return footer{}, err
	}
	t := thrift{data: data, items: limits.Items}
	f := t.footer()
	switch {
	case t.err != nil:
		return footer{}, fmt.Errorf("its footer: %w", t.err)
	case f.locked:
		return footer{}, errors.New("it is encrypted: write it without encryption")
	case f.rows < 0 || f.rows > limits.Rows:
		return footer{}, fmt.Errorf("it has %d rows: want at most %d", f.rows, limits.Rows)
	}
	return f, nil
}

func (t *thrift) footer() footer {
	var f footer
	t.structure(func(id int64, kind byte) {
		switch id {
		case 2:
			t.structures(kind, func() { f.schema = append(f.schema, t.element()) })
		case 3:
			f.rows = t.number(kind)
		case 4:
			t.structures(kind, func() { f.groups = append(f.groups, t.rowGroup()) })
		case 8:
			f.locked = true
			t.skip(kind)
		default:
			t.skip(kind)
		}
	})
	return f
}

func (t *thrift) element() element {
	e := element{physical: -1, converted: -1}
	t.structure(func(id int64, kind byte) {
		switch {
		case id == 1:
			e.physical = t.number(kind)
		case id == 3:
			e.repetition = t.number(kind)
		case id == 4 && kind == thriftBinary:
			e.name = t.text()
		case id == 5:
			e.children = t.number(kind)
		case id == 6:
			e.converted = t.number(kind)
			e.unsigned = e.unsigned || e.converted >= convertedUint8 && e.converted <= convertedUint64
		case id == 10 && kind == thriftStruct:
			t.structure(func(id int64, kind byte) { e.setLogical(t, logical(id), kind) })
		default:
			t.skip(kind)
		}
	})
	return e
}

// setLogical reads the member of the union LogicalType, of which that of integers says the sign.
func (e *element) setLogical(t *thrift, l logical, kind byte) {
	e.logical = l
	if l != logicalInteger || kind != thriftStruct {
		t.skip(kind)
		return
	}
	t.structure(func(id int64, kind byte) {
		if id == 2 {
			e.unsigned = kind == thriftFalse
		}
		t.skip(kind)
	})
}

func (t *thrift) rowGroup() rowGroup {
	var g rowGroup
	t.structure(func(id int64, kind byte) {
		switch id {
		case 1:
			t.structures(kind, func() { g.chunks = append(g.chunks, t.chunk()) })
		case 3:
			g.rows = t.number(kind)
		default:
			t.skip(kind)
		}
	})
	return g
}

func (t *thrift) chunk() chunk {
	var c chunk
	found := false
	t.structure(func(id int64, kind byte) {
		switch {
		case id == 3 && kind == thriftStruct:
			found = true
			t.structure(c.field(t))
		case id == 1 && kind == thriftBinary:
			c.elsewhere = c.elsewhere || t.text() != ""
		default:
			c.elsewhere = c.elsewhere || id == 8 || id == 9
			t.skip(kind)
		}
	})
	c.elsewhere = c.elsewhere || !found
	return c
}

// field reads the fields of ColumnMetaData.
func (c *chunk) field(t *thrift) func(id int64, kind byte) {
	return func(id int64, kind byte) {
		switch id {
		case 1:
			c.physical = t.number(kind)
		case 4:
			c.codec = t.number(kind)
		case 5:
			c.values = t.number(kind)
		case 7:
			c.compressed = t.number(kind)
		case 9:
			c.data = t.number(kind)
		case 11:
			c.dictionary = t.number(kind)
		default:
			t.skip(kind)
		}
	}
}
