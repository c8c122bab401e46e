package onnx

import (
	"encoding/binary"
	"io"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/protobuf"
)

// maxScales is how many scales one tensor has at most: those of a large matrix in blocks of 16.
const maxScales = 1 << 24

// scaleTensor is a constant that a node quantizes by, or that is quantized.
type scaleTensor struct {
	valued bool // values are kept, and not the shape alone
	found  bool
	dtype  uint64
	dims   []int64
	values []float64 // nil for types of less than a byte
}

// count is the number of elements.
func (t *scaleTensor) count() int64 {
	n := int64(1)
	for _, d := range t.dims {
		n *= d
	}
	return n
}

// elementBytes is the size of an element whose values are read, by type. Those of 4 bits are in their range whatever they are.
var elementBytes = map[uint64]int{1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 10: 2, 11: 8, 16: 2}

// tensor reads TensorProto.
func (q *scaleReader) tensor(sp protobuf.Span, t *scaleTensor) error {
	var raw, numbers protobuf.Field
	var at outsideTensor
	var dims []int64
	err := q.Each(sp, "TensorProto", func(f protobuf.Field) (err error) {
		switch f.Num {
		case 1:
			dims, err = q.dimensions(f, dims)
		case 2:
			t.dtype = uint64(uint32(f.Val))
		case 4, 5, 10: // float_data, int32_data, double_data
			if f.Type == protowire.BytesType {
				numbers = f
			} else {
				err = protobuf.Invalid(f.At, "numbers of a scale that are not packed; export the model again")
			}
		case 9:
			raw = f
		case 13:
			err = q.externalEntry(f, &at)
		}
		return err
	})
	if err != nil {
		return err
	}
	count, ok := boundedElements(dims)
	if !ok {
		return protobuf.Invalid(sp.Start, "a tensor of more elements than there can be")
	}
	t.found, t.dims = true, dims
	width := elementBytes[t.dtype]
	if !t.valued || width == 0 {
		return nil
	}
	if count > maxScales {
		return protobuf.Invalid(sp.Start, "%d scales or zero points in one tensor; at most %d are allowed", count, maxScales)
	}
	if err := q.Keep(sp.Start, 8*count); err != nil {
		return err
	}
	switch {
	case at.location != "":
		t.values, err = q.outside(at, t.dtype, count*int64(width))
	case raw.Num == 9:
		var text string
		if raw.Span.Len() != count*int64(width) {
			return protobuf.Invalid(raw.At, "%d bytes of a tensor that has %d elements of %d bytes", raw.Span.Len(), count, width)
		}
		text, err = q.Read(raw)
		t.values = numbersIn(t.dtype, []byte(text))
	default:
		t.values, err = q.listed(numbers, t.dtype)
	}
	if err == nil && int64(len(t.values)) != count {
		err = protobuf.Invalid(sp.Start, "%d numbers of a tensor that has %d elements", len(t.values), count)
	}
	return err
}

// boundedElements is how many elements dimensions give, and false for more than there can be.
func boundedElements(dims []int64) (int64, bool) {
	count := int64(1)
	for _, d := range dims {
		if d > math.MaxInt64/128/max(count, 1) {
			return 0, false
		}
		count *= d
	}
	return count, true
}

// dimensions reads dimensions, packed or not, at most maxFlowRank.
func (q *scaleReader) dimensions(f protobuf.Field, dims []int64) ([]int64, error) {
	read := []uint64{f.Val}
	if f.Type == protowire.BytesType {
		read = nil
		for at := f.Span.Start; at < f.Span.End; {
			val, next, err := q.Varint(at, f.Span, "TensorProto.dims")
			if err != nil {
				return nil, err
			}
			read, at = append(read, val), next
			if len(read) > maxFlowRank {
				break
			}
		}
	}
	for _, d := range read {
		if dims = append(dims, int64(d)); len(dims) > maxFlowRank || int64(d) < 0 {
			return nil, protobuf.Invalid(f.At, "a quantized tensor of dimensions %v: want at most %d, none below 0", dims, maxFlowRank)
		}
	}
	return dims, nil
}

// outsideTensor is where a tensor is in external data.
type outsideTensor struct {
	location string
	offset   int64
}

// externalEntry reads an entry of external_data. What is wrong with one was found when the model was read.
func (q *scaleReader) externalEntry(f protobuf.Field, at *outsideTensor) error {
	if f.Type != protowire.BytesType || f.Span.Len() > bound.MaxName {
		return protobuf.Invalid(f.At, "an entry of external_data of %d bytes; at most %d are allowed", f.Span.Len(), bound.MaxName)
	}
	key, value, err := entry(q.Scanner, f)
	switch key {
	case "location":
		at.location = value
	case "offset":
		at.offset, _ = strconv.ParseInt(value, 10, 64)
	}
	return err
}

// outside reads the elements of external data.
func (q *scaleReader) outside(t outsideTensor, dtype uint64, bytes int64) ([]float64, error) {
	if q.external == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "scales are in external data %q, which is not at hand", t.location)
	}
	r, size, err := q.external(t.location)
	if err != nil {
		return nil, err
	}
	if t.offset < 0 || t.offset > size || bytes > size-t.offset {
		return nil, registry.Errorf(registry.CodeInvalid, "external data %q has %d bytes, and scales of %d bytes start at byte %s", t.location, size, bytes,
			strconv.FormatInt(t.offset, 10))
	}
	data := make([]byte, bytes)
	if _, err := r.ReadAt(data, t.offset); err != nil && err != io.EOF {
		return nil, err
	}
	return numbersIn(dtype, data), nil
}

// listed reads elements that are written as numbers of their own kind.
func (q *scaleReader) listed(f protobuf.Field, dtype uint64) ([]float64, error) {
	if f.Num == 0 {
		return nil, nil
	}
	if err := q.Keep(f.At, 8*f.Span.Len()); err != nil {
		return nil, err
	}
	if f.Num != 5 {
		text, err := q.Read(f)
		if err != nil || (f.Num == 4) != (dtype == 1) || (f.Num == 10) != (dtype == 11) {
			return nil, err
		}
		return numbersIn(dtype, []byte(text)), nil
	}
	var values []float64
	for at := f.Span.Start; at < f.Span.End; {
		val, next, err := q.Varint(at, f.Span, "TensorProto.int32_data")
		if err != nil {
			return nil, err
		}
		at = next
		switch dtype {
		case 10, 16: // bits of half precision
			values = append(values, numbersIn(dtype, binary.LittleEndian.AppendUint16(nil, uint16(val)))...)
		default:
			values = append(values, float64(int64(val)))
		}
	}
	return values, nil
}

// numbersIn are the numbers in raw bytes of a type in [elementBytes].
func numbersIn(dtype uint64, raw []byte) []float64 {
	width, le := elementBytes[dtype], binary.LittleEndian
	values := make([]float64, 0, len(raw)/width)
	for ; len(raw) >= width; raw = raw[width:] {
		v := 0.0
		switch dtype {
		case 1:
			v = float64(math.Float32frombits(le.Uint32(raw)))
		case 2:
			v = float64(raw[0])
		case 3:
			v = float64(int8(raw[0]))
		case 4:
			v = float64(le.Uint16(raw))
		case 5:
			v = float64(int16(le.Uint16(raw)))
		case 6:
			v = float64(int32(le.Uint32(raw)))
		case 10:
			v = float16Value(le.Uint16(raw))
		case 11:
			v = math.Float64frombits(le.Uint64(raw))
		case 16:
			v = float64(math.Float32frombits(uint32(le.Uint16(raw)) << 16))
		}
		values = append(values, v)
	}
	return values
}

// float16Value is a number of IEEE 754 binary16.
func float16Value(bits uint16) float64 {
	sign, exponent, fraction := 1-2*float64(bits>>15), int(bits>>10&31), float64(bits&1023)
	switch exponent {
	case 31:
		if fraction > 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	case 0:
		return sign * math.Ldexp(fraction, -24)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}
