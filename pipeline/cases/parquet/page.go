package parquet

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// Types of pages.
const (
	pageData       = 0
	pageDictionary = 2
	pageDataV2     = 3
)

// pageHeader is PageHeader with the header of its type.
type pageHeader struct {
	kind, size, compressed int64
	values, encoding       int64
	definitionEncoding     int64
	repetitionEncoding     int64
	definitions            int64 // bytes of levels, of a page of version 2
	repetitions            int64
	plain                  bool // not compressed, of a page of version 2
}

func (t *thrift) pageHeader() pageHeader {
	h := pageHeader{definitionEncoding: encodingRLE, repetitionEncoding: encodingRLE}
	t.structure(func(id int64, kind byte) {
		switch {
		case id == 1:
			h.kind = t.number(kind)
		case id == 2:
			h.size = t.number(kind)
		case id == 3:
			h.compressed = t.number(kind)
		case id == 5 && kind == thriftStruct:
			t.structure(t.numbers(map[int64]*int64{1: &h.values, 2: &h.encoding, 3: &h.definitionEncoding, 4: &h.repetitionEncoding}))
		case id == 7 && kind == thriftStruct:
			t.structure(t.numbers(map[int64]*int64{1: &h.values, 2: &h.encoding}))
		case id == 8 && kind == thriftStruct:
			read := t.numbers(map[int64]*int64{1: &h.values, 4: &h.encoding, 5: &h.definitions, 6: &h.repetitions})
			t.structure(func(id int64, kind byte) {
				h.plain = h.plain || id == 7 && kind == thriftFalse
				read(id, kind)
			})
		default:
			t.skip(kind)
		}
	})
	return h
}

// numbers reads the numbers of a structure into places by the number of their field.
func (t *thrift) numbers(places map[int64]*int64) func(id int64, kind byte) {
	return func(id int64, kind byte) {
		if place, ok := places[id]; ok {
			*place = t.number(kind)
			return
		}
		t.skip(kind)
	}
}

// read reads the pages of a chunk.
func (c chunk) read(b *builder, s source) error {
	start := c.data
	if c.dictionary > 0 && c.dictionary < start {
		start = c.dictionary
	}
	switch {
	case c.elsewhere:
		return errors.New("it is encrypted or in another file")
	case c.values == 0:
		return nil
	case c.physical != b.leaf.physical:
		return errors.New("its type in the schema is another than in its data")
	case start < 4 || c.compressed < 0 || start > s.size || c.compressed > s.size-start:
		return errors.New("its pages are not inside the file")
	case c.values < 0:
		return fmt.Errorf("it has %d values", c.values)
	}
	data := make([]byte, c.compressed)
	if _, err := s.file.ReadAt(data, start); err != nil {
		return err
	}
	b.dictionary, b.left = nil, c.values
	for b.left > 0 {
		t := thrift{data: data, items: 1 << 10}
		h := t.pageHeader()
		if t.err != nil {
			return fmt.Errorf("the header of a page: %w", t.err)
		}
		page := t.bytes(uint64(h.compressed)) // a negative size is too large a one
		if t.err != nil {
			return errors.New("a page is longer than its chunk")
		}
		data = data[t.at:]
		if err := b.page(h, c.codec, page, s.codec); err != nil {
			return err
		}
	}
	return nil
}

// page adds the values of a page.
func (b *builder) page(h pageHeader, codec int64, data []byte, d *decompressor) error {
	switch h.kind {
	case pageDictionary:
		return b.readDictionary(h, codec, data, d)
	case pageData, pageDataV2:
	default:
		return nil // an index, of which values have no need
	}
	if h.values < 1 || h.values > b.left {
		return fmt.Errorf("a page has %d values, and %d are left", h.values, b.left)
	}
	b.left -= h.values
	n := int(h.values)
	if err := b.space.take(int64(n) * b.leaf.kind.size()); err != nil {
		return err
	}
	repetitions, definitions, values, err := b.parts(h, codec, data, d)
	if err != nil {
		return err
	}
	b.definitions, err = levels(b.definitions[:0], definitions, b.leaf.defined, n)
	if err == nil {
		b.repetitions, err = levels(b.repetitions[:0], repetitions, len(b.leaf.lists), n)
	}
	if err != nil {
		return err
	}
	present := n
	for _, level := range b.definitions {
		if int(level) < b.leaf.defined {
			present--
		}
	}
	decoded, err := b.decode(h.encoding, values, present)
	if err != nil {
		return err
	}
	return b.add(decoded, n)
}

// parts splits a page into repetition levels, definition levels and values.
func (b *builder) parts(h pageHeader, codec int64, data []byte, d *decompressor) (repetitions, definitions, values []byte, err error) {
	if h.kind == pageDataV2 {
		if h.repetitions < 0 || h.definitions < 0 || h.repetitions > int64(len(data)) || h.definitions > int64(len(data))-h.repetitions {
			return nil, nil, nil, errors.New("the levels of a page are longer than the page")
		}
		repetitions, data = data[:h.repetitions], data[h.repetitions:]
		definitions, data = data[:h.definitions], data[h.definitions:]
		if h.plain {
			codec = codecNone
		}
		values, err = d.page(codec, data, h.size-h.repetitions-h.definitions)
		return repetitions, definitions, values, err
	}
	if values, err = d.page(codec, data, h.size); err != nil {
		return nil, nil, nil, err
	}
	if len(b.leaf.lists) > 0 {
		if repetitions, values, err = prefixed(h.repetitionEncoding, values); err != nil {
			return nil, nil, nil, err
		}
	}
	if b.leaf.defined > 0 {
		definitions, values, err = prefixed(h.definitionEncoding, values)
	}
	return repetitions, definitions, values, err
}

// levels decodes n levels from 0 to most; nothing is stored if that is 0.
func levels(into []uint8, data []byte, most, n int) ([]uint8, error) {
	if most == 0 {
		return into, nil
	}
	into, err := appendHybrid(into, data, bits.Len(uint(most)), n)
	if err != nil {
		return into, err
	}
	for _, level := range into {
		if int(level) > most {
			return into, fmt.Errorf("a level is %d: want at most %d", level, most)
		}
	}
	return into, nil
}

// source is what the pages of a column are read from.
type source struct {
	file  io.ReaderAt
	size  int64
	codec *decompressor
	space *budget
}

// readDictionary reads the dictionary of a chunk.
func (b *builder) readDictionary(h pageHeader, codec int64, data []byte, d *decompressor) error {
	if b.dictionary != nil {
		return errors.New("it has two dictionaries")
	}
	if h.values < 0 || h.encoding != encodingPlain && h.encoding != encodingPlainDictionary {
		return errors.New("its dictionary is broken")
	}
	page, err := d.page(codec, data, h.size)
	if err != nil {
		return err
	}
	if h.values > int64(len(page))/4 || b.leaf.physical == physicalBoolean {
		return errors.New("its dictionary is longer than its page")
	}
	v, err := b.plain(page, int(h.values))
	b.dictionary = &v
	return err
}
