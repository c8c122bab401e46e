package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// appendHybrid decodes n numbers of a width in bits from runs of equal numbers and of packed ones.
func appendHybrid[T uint8 | uint32](into []T, data []byte, width, n int) ([]T, error) {
	if width > bits.Len64(uint64(^T(0))) {
		return into, fmt.Errorf("numbers of %d bits are too wide", width)
	}
	wanted := len(into) + n
	for len(into) < wanted {
		header, used := binary.Uvarint(data)
		if used <= 0 {
			return into, errShort
		}
		data = data[used:]
		left := uint64(wanted - len(into))
		if header&1 == 0 {
			size := (width + 7) / 8
			if len(data) < size || header>>1 == 0 {
				return into, errShort
			}
			value := T(little(data[:size]))
			for range min(header>>1, left) {
				into = append(into, value)
			}
			data = data[size:]
			continue
		}
		groups := header >> 1 // of 8 numbers
		if groups == 0 || width > 0 && groups > uint64(len(data)/width) {
			return into, errShort
		}
		packed := data
		if width > 0 {
			packed, data = data[:int(groups)*width], data[int(groups)*width:]
		}
		for i := range min(left, 8*min(groups, left)) {
			into = append(into, T(bitsAt(packed, i*uint64(width), width)))
		}
	}
	return into, nil
}

// little reads a number of up to 8 bytes, the least first.
func little(data []byte) uint64 {
	var eight [8]byte
	copy(eight[:], data)
	return binary.LittleEndian.Uint64(eight[:])
}

// bitsAt reads a number of up to 64 bits that begins at a bit. Bits count from the lowest of each byte.
func bitsAt(data []byte, at uint64, width int) uint64 {
	if width == 0 {
		return 0
	}
	first, shift := at/8, at%8
	value := little(data[first:min(first+8, uint64(len(data)))]) >> shift
	if rest := uint64(width) + shift; rest > 64 {
		value |= uint64(data[first+8]) << (64 - shift)
	}
	if width < 64 {
		value &= 1<<width - 1
	}
	return value
}

// deltas decodes n numbers of the encoding DELTA_BINARY_PACKED, and returns the bytes that follow them.
func deltas(data []byte, n int) (values []int64, rest []byte, err error) {
	t := thrift{data: data} // whose numbers are stored alike
	block, minis, total := t.uvarint(), t.uvarint(), t.uvarint()
	value := t.int()
	switch {
	case t.err != nil:
		return nil, nil, t.err
	case block == 0 || block > 1<<20 || block%128 != 0 || minis == 0 || minis > block/32 || block%minis != 0 || (block/minis)%32 != 0:
		return nil, nil, fmt.Errorf("blocks of %d numbers in %d parts are against the format", block, minis)
	case total != uint64(n):
		return nil, nil, errors.New("the number of values in a page differs from its header")
	}
	if n > 0 {
		values = append(values, value)
	}
	for len(values) < n {
		if values = t.block(values, n, block/minis, minis); t.err != nil {
			return nil, nil, t.err
		}
	}
	return values, t.data[t.at:], nil
}

// block adds the numbers of a block of deltas until there are n. It has as many parts as minis says, each
// of so many numbers of a width in bits.
func (t *thrift) block(values []int64, n int, numbers, minis uint64) []int64 {
	value, least := values[len(values)-1], t.int()
	for _, width := range t.bytes(minis) {
		if len(values) == n || t.err != nil {
			break
		}
		if width > 64 {
			t.fail(fmt.Errorf("numbers of %d bits are too wide", width))
			break
		}
		packed := t.bytes(numbers * uint64(width) / 8)
		for i := uint64(0); i < numbers && len(values) < n && t.err == nil; i++ {
			value += least + int64(bitsAt(packed, i*uint64(width), int(width))) // wraps around, as the format says
			values = append(values, value)
		}
	}
	return values
}
