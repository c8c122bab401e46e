package tensor

import (
	"encoding/binary"
	"slices"
)

// layouts are the bits of exponent and mantissa of the floats whose values have a double.
var layouts = map[DType]struct{ exponent, mantissa uint }{
	Float64: {11, 52}, Float32: {8, 23}, Float16: {5, 10}, BFloat16: {8, 7},
}

// Doubled returns a tensor of floats with each value times two, exactly. Values that are not finite, or whose double is not, stay as they
// are. A tensor of another type is returned as it is.
func Doubled(t Tensor) Tensor {
	layout, ok := layouts[t.DType]
	if !ok {
		return t
	}
	t.Data = slices.Clone(t.Data)
	size := t.DType.Size()
	for at := 0; at+size <= len(t.Data); at += size {
		var word [8]byte
		copy(word[:], t.Data[at:at+size])
		bits := binary.LittleEndian.Uint64(word[:])
		last := uint64(1)<<layout.exponent - 1
		switch exponent := bits >> layout.mantissa & last; {
		case exponent >= last-1: // the double is infinite
		case exponent > 0:
			bits += 1 << layout.mantissa
		default: // subnormal: the sign stays, and the rest moves
			sign := bits >> (layout.exponent + layout.mantissa) << (layout.exponent + layout.mantissa)
			bits = sign | (bits&^sign)<<1
		}
		binary.LittleEndian.PutUint64(word[:], bits)
		copy(t.Data[at:at+size], word[:size])
	}
	return t
}
