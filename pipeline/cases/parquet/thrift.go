package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Types of the compact protocol:
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
const (
	thriftTrue = iota + 1
	thriftFalse
	thriftByte
	thriftI16
	thriftI32
	thriftI64
	thriftDouble
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
)

var errShort = errors.New("it ends in the middle of a structure")

// thrift reads structures in Thrift's compact protocol. The first error stays, and everything after it reads as
// zero.
type thrift struct {
	data  []byte
	at    int
	depth int
	items int // elements of lists that may still come
	err   error
}

func (t *thrift) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.at = len(t.data)
}

func (t *thrift) byte() byte {
	if t.at >= len(t.data) {
		t.fail(errShort)
		return 0
	}
	t.at++
	return t.data[t.at-1]
}

func (t *thrift) uvarint() uint64 {
	v, n := binary.Uvarint(t.data[t.at:])
	if n <= 0 {
		t.fail(errShort)
		return 0
	}
	t.at += n
	return v
}

// int reads a number of 16, 32 or 64 bits in zigzag.
func (t *thrift) int() int64 {
	v := t.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (t *thrift) bytes(n uint64) []byte {
	if n > uint64(len(t.data)-t.at) {
		t.fail(errShort)
		return nil
	}
	t.at += int(n)
	return t.data[t.at-int(n) : t.at]
}

func (t *thrift) text() string { return string(t.bytes(t.uvarint())) }

// structure reads a structure. field reads or skips the value of each field.
func (t *thrift) structure(field func(id int64, kind byte)) {
	t.depth++
	defer func() { t.depth-- }()
	if t.depth > maxDepth {
		t.fail(fmt.Errorf("its structures are more than %d deep", maxDepth))
	}
	id := int64(0)
	for t.err == nil {
		header := t.byte()
		kind := header & 15
		if kind == 0 {
			return
		}
		if delta := int64(header >> 4); delta != 0 {
			id += delta
		} else {
			id = t.int()
		}
		field(id, kind)
	}
}

// list reads a list. element reads or skips each element.
func (t *thrift) list(element func(kind byte)) {
	header := t.byte()
	size, kind := uint64(header>>4), header&15
	if size == 15 {
		size = t.uvarint()
	}
	if size > uint64(len(t.data)-t.at) || size > uint64(t.items) {
		t.fail(fmt.Errorf("a list of %d elements is longer than it can be", size))
	}
	t.items -= int(min(size, uint64(t.items)))
	for ; size > 0 && t.err == nil; size-- {
		element(kind)
	}
}

// structures reads a list of structures.
func (t *thrift) structures(kind byte, element func()) {
	if kind != thriftList {
		t.skip(kind)
		return
	}
	t.list(func(kind byte) {
		if kind != thriftStruct {
			t.fail(errors.New("a list has another type than it should"))
			return
		}
		element()
	})
}

// number reads a number, and skips what is none.
func (t *thrift) number(kind byte) int64 {
	if kind == thriftI16 || kind == thriftI32 || kind == thriftI64 {
		return t.int()
	}
	t.skip(kind)
	return 0
}

func (t *thrift) skip(kind byte) {
	switch kind {
	case thriftTrue, thriftFalse:
	case thriftByte:
		t.byte()
	case thriftI16, thriftI32, thriftI64:
		t.uvarint()
	case thriftDouble:
		t.bytes(8)
	case thriftBinary:
		t.bytes(t.uvarint())
	case thriftStruct:
		t.structure(func(_ int64, kind byte) { t.skip(kind) })
	case thriftList, thriftSet:
		t.depth++
		t.list(t.skipElement)
		t.depth--
	default: // the format has no maps
		t.fail(fmt.Errorf("type %d is unknown", kind))
	}
}

// skipElement skips an element of a list, where a boolean takes a byte.
func (t *thrift) skipElement(kind byte) {
	switch {
	case t.depth > maxDepth:
		t.fail(fmt.Errorf("its structures are more than %d deep", maxDepth))
	case kind == thriftTrue || kind == thriftFalse:
		t.byte()
	default:
		t.skip(kind)
	}
}
