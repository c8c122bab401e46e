package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Encodings.
const (
	encodingPlain           = 0
	encodingPlainDictionary = 2
	encodingRLE             = 3
	encodingDelta           = 5
	encodingDeltaLength     = 6
	encodingDeltaBytes      = 7
	encodingDictionary      = 8
	encodingSplit           = 9
)

// decode decodes n values of a page.
func (b *builder) decode(encoding int64, data []byte, n int) (values, error) {
	var v values
	switch encoding {
	case encodingPlain:
		return b.plain(data, n)
	case encodingDictionary, encodingPlainDictionary:
		return b.looked(data, n)
	}
	switch b.leaf.kind {
	case Boolean:
		return b.booleans(encoding, data, n)
	case Text:
		return b.strings(encoding, data, n)
	}
	switch {
	case encoding == encodingDelta && b.leaf.kind == Integer:
		var err error
		if v.ints, _, err = deltas(data, n); err != nil {
			return v, err
		}
		return v, b.signed(v.ints)
	case encoding == encodingSplit:
		joined, err := join(data, n, b.leaf.width())
		if err != nil {
			return v, err
		}
		return b.plain(joined, n)
	}
	return v, unknownEncoding(encoding)
}

func unknownEncoding(encoding int64) error {
	return fmt.Errorf("its encoding %d is not read: write the file with plain and dictionary encoding", encoding)
}

// booleans decodes n booleans that are stored as runs.
func (b *builder) booleans(encoding int64, data []byte, n int) (v values, err error) {
	if encoding != encodingRLE {
		return v, unknownEncoding(encoding)
	}
	runs, _, err := prefixed(encodingRLE, data)
	if err != nil {
		return v, err
	}
	bits, err := appendHybrid([]uint8(nil), runs, 1, n)
	for _, bit := range bits {
		v.ints = append(v.ints, int64(bit))
	}
	return v, err
}

// strings decodes n texts whose lengths are stored as deltas.
func (b *builder) strings(encoding int64, data []byte, n int) (v values, err error) {
	switch encoding {
	case encodingDeltaLength:
		v.texts, err = lengths(data, n)
	case encodingDeltaBytes:
		v.texts, err = prefixes(data, n, *b.space)
	default:
		err = unknownEncoding(encoding)
	}
	return v, err
}

// lengths decodes n texts of the encoding DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes.
func lengths(data []byte, n int) ([]string, error) {
	all, rest, err := deltas(data, n)
	if err != nil {
		return nil, err
	}
	texts := make([]string, 0, len(all))
	for _, length := range all {
		if length < 0 || length > int64(len(rest)) {
			return nil, errShort
		}
		texts = append(texts, string(rest[:length]))
		rest = rest[length:]
	}
	return texts, nil
}

// prefixes decodes n texts of the encoding DELTA_BYTE_ARRAY, of which each begins as the one before
// does. Together they may be far larger than their page, but not than space.
func prefixes(data []byte, n int, space budget) ([]string, error) {
	all, rest, err := deltas(data, n)
	if err != nil {
		return nil, err
	}
	texts, err := lengths(rest, n)
	if err != nil {
		return nil, err
	}
	before := ""
	for i, length := range all {
		if length < 0 || length > int64(len(before)) {
			return nil, errShort
		}
		if err := space.take(length + int64(len(texts[i]))); err != nil {
			return nil, err
		}
		before = before[:length] + texts[i]
		texts[i] = before
	}
	return texts, nil
}

// width is the size of a stored number, in bytes.
func (l leaf) width() int {
	if l.physical == physicalInt32 || l.physical == physicalFloat {
		return 4
	}
	return 8
}

// join puts the bytes of numbers together, of which the first of each come first, then the second.
func join(data []byte, n, width int) ([]byte, error) {
	if len(data)/width < n {
		return nil, errShort
	}
	out := make([]byte, n*width)
	for i := range out {
		out[i] = data[i%width*n+i/width]
	}
	return out, nil
}

// plain decodes n values of the encoding PLAIN.
func (b *builder) plain(data []byte, n int) (v values, err error) {
	switch b.leaf.physical {
	case physicalBoolean:
		if (n+7)/8 > len(data) {
			return v, errShort
		}
		for i := range n {
			v.ints = append(v.ints, int64(data[i/8]>>(i%8)&1))
		}
		return v, nil
	case physicalBytes:
		for range n {
			if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
				return v, errShort
			}
			end := 4 + int(binary.LittleEndian.Uint32(data))
			v.texts = append(v.texts, string(data[4:end]))
			data = data[end:]
		}
		return v, nil
	}
	width := b.leaf.width()
	if len(data)/width < n {
		return v, errShort
	}
	for i := range n {
		bits := little(data[i*width : (i+1)*width])
		switch b.leaf.physical {
		case physicalInt32:
			v.ints = append(v.ints, int64(int32(bits)))
		case physicalInt64:
			v.ints = append(v.ints, int64(bits))
		case physicalFloat:
			v.floats = append(v.floats, float64(math.Float32frombits(uint32(bits))))
		default:
			v.floats = append(v.floats, math.Float64frombits(bits))
		}
	}
	return v, b.signed(v.ints)
}

// signed gives integers that have no sign their value.
func (b *builder) signed(ints []int64) error {
	if b.leaf.physical == physicalInt32 && !b.leaf.unsigned {
		for i, v := range ints {
			ints[i] = int64(int32(v)) // of deltas, which wrap around
		}
	}
	if !b.leaf.unsigned {
		return nil
	}
	for i, v := range ints {
		switch {
		case b.leaf.physical == physicalInt32:
			ints[i] = int64(uint32(v))
		case v < 0:
			return fmt.Errorf("%d is too large: want at most %d", uint64(v), int64(math.MaxInt64))
		}
	}
	return nil
}

// looked decodes n values that are numbers in the dictionary.
func (b *builder) looked(data []byte, n int) (v values, err error) {
	if b.dictionary == nil {
		return v, errors.New("it has no dictionary")
	}
	if n == 0 {
		return v, nil
	}
	if len(data) == 0 {
		return v, errShort
	}
	indexes, err := appendHybrid([]uint32(nil), data[1:], int(data[0]), n)
	if err != nil {
		return v, err
	}
	if v.ints, err = picked(b.dictionary.ints, v.ints, indexes, b.leaf.kind == Integer || b.leaf.kind == Boolean); err != nil {
		return v, err
	}
	if v.floats, err = picked(b.dictionary.floats, v.floats, indexes, b.leaf.kind == Single || b.leaf.kind == Double); err != nil {
		return v, err
	}
	v.texts, err = picked(b.dictionary.texts, v.texts, indexes, b.leaf.kind == Text)
	return v, err
}

func picked[T any](from, into []T, indexes []uint32, has bool) ([]T, error) {
	if !has {
		return into, nil
	}
	for _, i := range indexes {
		if uint64(i) >= uint64(len(from)) {
			return into, fmt.Errorf("value %d of a dictionary of %d is asked for", i, len(from))
		}
		into = append(into, from[i])
	}
	return into, nil
}

// prefixed cuts off levels, before which 4 bytes say their length.
func prefixed(encoding int64, data []byte) (levels, rest []byte, err error) {
	if encoding != encodingRLE {
		return nil, nil, fmt.Errorf("the encoding %d of its levels is not read", encoding)
	}
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
		return nil, nil, errShort
	}
	end := 4 + int(binary.LittleEndian.Uint32(data))
	return data[4:end], data[end:], nil
}
