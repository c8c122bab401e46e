package inference

import (
	"encoding/binary"
	"math"
	"strconv"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// appendElement encodes one word of valid JSON as an element. It refuses a number that the type does not have.
// A whole number may be written with a fraction of 0, as Python writes floats.
func appendElement(out []byte, dtype tensor.DType, word string) ([]byte, error) {
	switch dtype {
	case tensor.Bool:
		switch word {
		case "true", "1":
			return append(out, 1), nil
		case "false", "0":
			return append(out, 0), nil
		}
		return nil, strconv.ErrSyntax
	case tensor.Float32:
		v, err := strconv.ParseFloat(word, 32)
		return binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v))), err
	case tensor.Float64:
		v, err := strconv.ParseFloat(word, 64)
		return binary.LittleEndian.AppendUint64(out, math.Float64bits(v)), err
	case tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64:
		v, err := strconv.ParseUint(wholeNumber(word), 10, 8*dtype.Size())
		return appendWhole(out, dtype, v), err
	}
	v, err := strconv.ParseInt(wholeNumber(word), 10, 8*dtype.Size())
	return appendWhole(out, dtype, uint64(v)), err
}

// wholeNumber gives a number without a fraction of 0 or an exponent, where it is whole and every float64 of
// its size is exact.
func wholeNumber(word string) string {
	if _, err := strconv.ParseInt(word, 10, 64); err == nil {
		return word
	}
	const exact = 1 << 53
	if v, err := strconv.ParseFloat(word, 64); err == nil && v == math.Trunc(v) && math.Abs(v) < exact {
		return strconv.FormatInt(int64(v), 10)
	}
	return word
}

func appendWhole(out []byte, dtype tensor.DType, v uint64) []byte {
	switch dtype.Size() {
	case 1:
		return append(out, byte(v))
	case 2:
		return binary.LittleEndian.AppendUint16(out, uint16(v))
	case 4:
		return binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	return binary.LittleEndian.AppendUint64(out, v)
}
