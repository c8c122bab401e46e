package serving

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// datatypes are the names of dtypes in the Open Inference Protocol.
var datatypes = map[tensor.DType]string{
	tensor.Float16: "FP16", tensor.BFloat16: "BF16", tensor.Float32: "FP32", tensor.Float64: "FP64", tensor.Bool: "BOOL",
	tensor.Int8: "INT8", tensor.Int16: "INT16", tensor.Int32: "INT32", tensor.Int64: "INT64",
	tensor.Uint8: "UINT8", tensor.Uint16: "UINT16", tensor.Uint32: "UINT32", tensor.Uint64: "UINT64",
}

// datatypeOfText is the name of text.
const datatypeOfText = "BYTES"

// datatype returns the protocol's name of a value's type.
func datatype(v caserun.Slot) string {
	if v.Text() {
		return datatypeOfText
	}
	return datatypes[v.DType]
}

// named is a tensor on the wire: the value, and the shape as servers see it. Text is packed as package tensor does it, with its bytes along
// a further dimension of the tensor.
type named struct {
	value  caserun.Slot
	tensor tensor.Tensor
}

// shape is the shape as the server sees it.
func (n named) shape() []int64 {
	if n.value.Text() {
		return n.tensor.Shape[:len(n.tensor.Shape)-1]
	}
	return n.tensor.Shape
}

// raw returns the bytes of the binary forms of the protocol: the numbers in little-endian order, or the texts, each after its length.
func (n named) raw() ([]byte, error) {
	if !n.value.Text() {
		return n.tensor.Data, nil
	}
	texts, err := tensor.UnpackText(n.tensor)
	if err != nil {
		return nil, err
	}
	var data []byte
	for _, text := range texts {
		data = binary.LittleEndian.AppendUint32(data, uint32(len(text)))
		data = append(data, text...)
	}
	return data, nil
}

// appendJSON appends the values as a JSON list: flat, or nested as the shape is. The numbers are the shortest that read back as the same.
// Errors: NaN and infinities, which JSON does not have.
func (n named) appendJSON(dst []byte, nested bool) ([]byte, error) {
	element, err := n.elements()
	if err != nil {
		return nil, err
	}
	shape := n.shape()
	if !nested {
		count := int64(1)
		for _, size := range shape {
			count *= size
		}
		shape = []int64{count}
	}
	at := 0
	var list func(dst []byte, shape []int64) []byte
	list = func(dst []byte, shape []int64) []byte {
		if len(shape) == 0 {
			dst = element(dst, at)
			at++
			return dst
		}
		dst = append(dst, '[')
		for i := range shape[0] {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = list(dst, shape[1:])
		}
		return append(dst, ']')
	}
	return list(dst, shape), nil
}

// elements returns what appends the i-th element as JSON.
func (n named) elements() (func(dst []byte, i int) []byte, error) {
	t := n.tensor
	if n.value.Text() {
		texts, err := tensor.UnpackText(t)
		if err != nil {
			return nil, err
		}
		return func(dst []byte, i int) []byte {
			text, _ := json.Marshal(texts[i]) // any string can be written
			return append(dst, text...)
		}, nil
	}
	switch t.DType.Class() {
	case tensor.ClassFloat:
		bits := 32 // of which 16 are a part
		if t.DType == tensor.Float64 {
			bits = 64
		}
		for _, v := range t.Float64s() {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, inexpressible("input %q has %v", n.value.Name, v)
			}
		}
		return func(dst []byte, i int) []byte { return strconv.AppendFloat(dst, t.Float64(i), 'g', -1, bits) }, nil
	case tensor.ClassBool:
		return func(dst []byte, i int) []byte { return strconv.AppendBool(dst, t.Data[i] != 0) }, nil
	}
	size := t.DType.Size()
	return func(dst []byte, i int) []byte {
		bits := integer(t.Data[i*size : (i+1)*size])
		if unsigned(t.DType) {
			return strconv.AppendUint(dst, bits, 10)
		}
		shift := 64 - 8*size
		return strconv.AppendInt(dst, int64(bits)<<shift>>shift, 10)
	}, nil
}

// inexpressible is the error about values that JSON does not have. It says nothing against the engine.
func inexpressible(format string, args ...any) error {
	return driverproc.Errorf(driverproc.Unavailable, format+", which JSON does not have: use a protocol with binary tensors", args...)
}

func unsigned(d tensor.DType) bool { return strings.HasPrefix(string(d), "uint") }

// integer reads 1, 2, 4 or 8 bytes.
func integer(data []byte) (bits uint64) {
	for i, b := range data {
		bits |= uint64(b) << (8 * i)
	}
	return bits
}

// fromJSON reads the values of an output from JSON: a list of numbers, nested or not. If shape is nil, the nesting is the shape.
func fromJSON(v caserun.Slot, data json.RawMessage, shape []int64) (tensor.Tensor, error) {
	t := tensor.Tensor{DType: v.DType}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	err := appendList(&t, decoder, 0)
	if err == nil && decoder.InputOffset() < int64(len(bytes.TrimRight(data, " \t\r\n"))) {
		err = errors.New("it has more than one JSON value")
	}
	if shape != nil {
		t.Shape = shape
	}
	if err == nil {
		err = t.Validate()
	}
	if err != nil {
		return tensor.Tensor{}, fmt.Errorf("output %q: %w", v.Name, err)
	}
	return t, nil
}

// deepest is how deep lists may be nested.
const deepest = 16

// appendList appends a number, or the numbers of a list, as they are read: an answer takes no more memory than its bytes and the tensor. It
// notes the length of the first list of each depth; another one makes no tensor.
func appendList(t *tensor.Tensor, decoder *json.Decoder, depth int) error {
	token, err := decoder.Token()
	if err != nil {
		return fmt.Errorf("the answer is not the JSON that was expected: %w", err)
	}
	if token != json.Delim('[') {
		return appendNumber(t, token)
	}
	if depth == deepest {
		return fmt.Errorf("its lists are nested more than %d deep", deepest)
	}
	const open = -1
	if depth == len(t.Shape) {
		t.Shape = append(t.Shape, open)
	}
	length := int64(0)
	for ; decoder.More(); length++ {
		if err := appendList(t, decoder, depth+1); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return fmt.Errorf("the answer is not the JSON that was expected: %w", err)
	}
	if t.Shape[depth] == open {
		t.Shape[depth] = length
	}
	if t.Shape[depth] != length {
		return fmt.Errorf("its lists have %d and %d entries", t.Shape[depth], length)
	}
	return nil
}

// appendNumber appends a number of JSON to the bytes of a tensor. Errors: a number that the dtype does not hold, and one of 16 bits, for which
// a protocol has to be binary.
func appendNumber(t *tensor.Tensor, v any) (err error) {
	if b, ok := v.(bool); ok && t.DType == tensor.Bool {
		t.Data = append(t.Data, map[bool]byte{true: 1}[b])
		return nil
	}
	number, ok := v.(json.Number)
	if !ok {
		return fmt.Errorf("it has %.40v: want numbers", v)
	}
	size := t.DType.Size()
	var bits uint64
	switch {
	case t.DType == tensor.Float32:
		var f float64
		f, err = strconv.ParseFloat(number.String(), 32)
		bits = uint64(math.Float32bits(float32(f)))
	case t.DType == tensor.Float64:
		var f float64
		f, err = strconv.ParseFloat(number.String(), 64)
		bits = math.Float64bits(f)
	case unsigned(t.DType):
		bits, err = strconv.ParseUint(number.String(), 10, 8*size)
	case t.DType.Class() == tensor.ClassInteger:
		var i int64
		i, err = strconv.ParseInt(number.String(), 10, 8*size)
		bits = uint64(i)
	default:
		return inexpressible("it is %s", t.DType)
	}
	if err != nil {
		return fmt.Errorf("it has %s, which is no %s", number, t.DType)
	}
	var number8 [8]byte
	binary.LittleEndian.PutUint64(number8[:], bits)
	t.Data = append(t.Data, number8[:size]...)
	return nil
}

// decodeJSON decodes one JSON value. Numbers in an any stay text.
func decodeJSON(data []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(v); err != nil {
		return fmt.Errorf("the answer is not the JSON that was expected: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("the answer has more than one JSON value")
	}
	return nil
}
