package tensor

import (
	"encoding/binary"
	"math"
)

// Float64 returns element i, in C order. All dtypes except the two 64-bit integers convert
// exactly; those are rounded beyond 2^53. It panics if i is out of range, as a slice does.
func (t Tensor) Float64(i int) float64 {
	var one [1]float64
	size := t.DType.Size()
	decode(one[:], t.DType, t.Data[i*size:(i+1)*size])
	return one[0]
}

// Float64s returns all elements in C order, converted as by Float64.
func (t Tensor) Float64s() []float64 {
	out := make([]float64, t.Len())
	decode(out, t.DType, t.Data)
	return out
}

// decode fills dst with the elements of src, which holds at least as many.
func decode(dst []float64, d DType, src []byte) {
	src = src[:len(dst)*d.Size()]
	switch d {
	case Float32:
		decode4(dst, src, func(u uint32) float64 { return float64(math.Float32frombits(u)) })
	case Float64:
		decode8(dst, src, math.Float64frombits)
	case Float16:
		decode2(dst, src, float16)
	case BFloat16:
		decode2(dst, src, bfloat16)
	case Float8E4M3:
		decode1(dst, src, float8e4m3)
	case Float8E5M2:
		decode1(dst, src, float8e5m2)
	default:
		decodeIntegers(dst, d, src)
	}
}

func decodeIntegers(dst []float64, d DType, src []byte) {
	switch d {
	case Bool:
		decode1(dst, src, func(u uint8) float64 { return float64(min(u, 1)) })
	case Int8:
		decode1(dst, src, func(u uint8) float64 { return float64(int8(u)) })
	case Uint8:
		decode1(dst, src, func(u uint8) float64 { return float64(u) })
	case Int16:
		decode2(dst, src, func(u uint16) float64 { return float64(int16(u)) })
	case Uint16:
		decode2(dst, src, func(u uint16) float64 { return float64(u) })
	case Int32:
		decode4(dst, src, func(u uint32) float64 { return float64(int32(u)) })
	case Uint32:
		decode4(dst, src, func(u uint32) float64 { return float64(u) })
	case Int64:
		decode8(dst, src, func(u uint64) float64 { return float64(int64(u)) })
	case Uint64:
		decode8(dst, src, func(u uint64) float64 { return float64(u) })
	}
}

// The loops are small enough for inlining with their conversion function, and shrink src
// instead of indexing it, which avoids bounds checks.

func decode1(dst []float64, src []byte, value func(uint8) float64) {
	for i := range dst {
		dst[i] = value(src[i])
	}
}

func decode2(dst []float64, src []byte, value func(uint16) float64) {
	for i := range dst {
		dst[i], src = value(binary.LittleEndian.Uint16(src)), src[2:]
	}
}

func decode4(dst []float64, src []byte, value func(uint32) float64) {
	for i := range dst {
		dst[i], src = value(binary.LittleEndian.Uint32(src)), src[4:]
	}
}

func decode8(dst []float64, src []byte, value func(uint64) float64) {
	for i := range dst {
		dst[i], src = value(binary.LittleEndian.Uint64(src)), src[8:]
	}
}

// float16 decodes IEEE 754 binary16: 5 exponent bits, bias 15, 10 mantissa bits.
func float16(u uint16) float64 {
	exponent, mantissa := uint64(u>>10)&0x1f, uint64(u)&0x3ff
	switch exponent {
	case 0:
		return signed(u>>15, float64(mantissa)*0x1p-24)
	case 0x1f:
		return signed(u>>15, nonFinite(mantissa))
	}
	return signed(u>>15, math.Float64frombits((exponent+1023-15)<<52|mantissa<<42))
}

// bfloat16 decodes the upper half of a binary32.
func bfloat16(u uint16) float64 {
	return float64(math.Float32frombits(uint32(u) << 16))
}

// float8e5m2 decodes OFP8 E5M2, which is the upper half of a binary16.
func float8e5m2(u uint8) float64 { return float16(uint16(u) << 8) }

// float8e4m3 decodes OFP8 E4M3: 4 exponent bits, bias 7, 3 mantissa bits, no
// infinity; the largest code is NaN.
func float8e4m3(u uint8) float64 {
	exponent, mantissa := uint64(u>>3)&0xf, uint64(u)&7
	switch {
	case exponent == 0:
		return signed(uint16(u>>7), float64(mantissa)*0x1p-9)
	case exponent == 0xf && mantissa == 7:
		return math.NaN()
	}
	return signed(uint16(u>>7), math.Float64frombits((exponent+1023-7)<<52|mantissa<<49))
}

func signed(sign uint16, magnitude float64) float64 {
	return math.Float64frombits(math.Float64bits(magnitude) | uint64(sign)<<63)
}

func nonFinite(mantissa uint64) float64 {
	if mantissa != 0 {
		return math.NaN()
	}
	return math.Inf(1)
}
