//go:build cgo

package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/x448/float16"
	rt "github.com/yalue/onnxruntime_go"
)

// kind is an element type: its names, and how JSON and bytes hold a value.
type kind struct {
	name  string // in the Open Inference Protocol
	tf    string // in TensorFlow
	code  rt.TensorElementDataType
	size  int                                          // bytes of an element, 0 for text
	parse func(to []byte, element any) ([]byte, error) // appends an element of JSON; nil if JSON has none
	value func(element []byte) any                     // returns an element for JSON
	// scalar makes a value of rank 0, and read copies a value of the library. Both are nil for types that Go lacks.
	scalar func(element []byte) (rt.Value, error)
	read   func(rt.Value) ([]byte, error)
}

// text is the kind of strings. Their bytes are apart from those of numbers, since each has its own length.
var text = kind{name: "BYTES", tf: "DT_STRING", code: rt.TensorElementDataTypeString}

// kinds are the types that inputs and outputs of a model may have.
var kinds = []kind{
	row("FP32", "DT_FLOAT", rt.TensorElementDataTypeFloat, float[float32](32)),
	row("FP64", "DT_DOUBLE", rt.TensorElementDataTypeDouble, float[float64](64)),
	half(),
	{name: "BF16", tf: "DT_BFLOAT16", code: rt.TensorElementDataTypeBFloat16, size: 2},
	row("INT8", "DT_INT8", rt.TensorElementDataTypeInt8, integer[int8](8)),
	row("INT16", "DT_INT16", rt.TensorElementDataTypeInt16, integer[int16](16)),
	row("INT32", "DT_INT32", rt.TensorElementDataTypeInt32, integer[int32](32)),
	row("INT64", "DT_INT64", rt.TensorElementDataTypeInt64, integer[int64](64)),
	row("UINT8", "DT_UINT8", rt.TensorElementDataTypeUint8, natural[uint8](8)),
	row("UINT16", "DT_UINT16", rt.TensorElementDataTypeUint16, natural[uint16](16)),
	row("UINT32", "DT_UINT32", rt.TensorElementDataTypeUint32, natural[uint32](32)),
	row("UINT64", "DT_UINT64", rt.TensorElementDataTypeUint64, natural[uint64](64)),
	row("BOOL", "DT_BOOL", rt.TensorElementDataTypeBool, func(element any) (bool, error) {
		v, ok := element.(bool)
		if !ok {
			return false, fmt.Errorf("%.40v: want true or false", element)
		}
		return v, nil
	}),
	text,
}

func kindOf(code rt.TensorElementDataType) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.code == code })
	return kinds[max(i, 0)], i >= 0
}

func row[T rt.TensorData](name, tf string, code rt.TensorElementDataType, parse func(any) (T, error)) kind {
	var zero T
	return kind{name: name, tf: tf, code: code, size: binary.Size(zero),
		parse: func(to []byte, element any) ([]byte, error) {
			v, err := parse(element)
			if err != nil {
				return nil, err
			}
			return binary.Append(to, binary.LittleEndian, v)
		},
		value: func(element []byte) any {
			var v T
			_, _ = binary.Decode(element, binary.LittleEndian, &v) // the element has as many bytes
			return v
		},
		scalar: func(element []byte) (rt.Value, error) {
			var v T
			if _, err := binary.Decode(element, binary.LittleEndian, &v); err != nil {
				return nil, err
			}
			return rt.NewScalar(v)
		},
		read: func(v rt.Value) ([]byte, error) {
			switch v := v.(type) {
			case *rt.Tensor[T]:
				return binary.Append(nil, binary.LittleEndian, v.GetData())
			case *rt.Scalar[T]:
				return binary.Append(nil, binary.LittleEndian, v.GetData())
			}
			return nil, fmt.Errorf("a %T", v)
		},
	}
}

// half is float16, which Go lacks. JSON holds it as the number that it stands for.
func half() kind {
	k := row("FP16", "DT_HALF", rt.TensorElementDataTypeFloat16, func(element any) (uint16, error) {
		v, err := float[float32](32)(element)
		rounded := float16.Fromfloat32(v)
		if err == nil && rounded.IsInf(0) {
			err = fmt.Errorf("%v is out of range", element)
		}
		return rounded.Bits(), err
	})
	k.scalar, k.read = nil, nil
	k.value = func(element []byte) any { return float16.Frombits(binary.LittleEndian.Uint16(element)).Float32() }
	return k
}

func parsed[T any](parse func(string) (T, error)) func(any) (T, error) {
	return func(element any) (T, error) {
		n, ok := element.(json.Number)
		if !ok {
			var zero T
			return zero, fmt.Errorf("%.40v: want a number", element)
		}
		return parse(n.String())
	}
}

func float[T float32 | float64](bits int) func(any) (T, error) {
	return parsed(func(s string) (T, error) {
		v, err := strconv.ParseFloat(s, bits)
		return T(v), err
	})
}

func integer[T int8 | int16 | int32 | int64](bits int) func(any) (T, error) {
	return parsed(func(s string) (T, error) {
		v, err := strconv.ParseInt(s, 10, bits)
		return T(v), err
	})
}

func natural[T uint8 | uint16 | uint32 | uint64](bits int) func(any) (T, error) {
	return parsed(func(s string) (T, error) {
		v, err := strconv.ParseUint(s, 10, bits)
		return T(v), err
	})
}

// array is an input or output of a request.
type array struct {
	name  string
	kind  kind
	shape []int64
	data  []byte   // of numbers, little-endian
	texts []string // of text
}

// elements returns the number of elements of a shape, at most math.MaxInt32.
func elements(shape []int64) (int, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 1 || d > math.MaxInt32 || n*d > math.MaxInt32 {
			return 0, fmt.Errorf("shape %v: want dimensions of at least 1, and at most %d elements", shape, math.MaxInt32)
		}
		n *= d
	}
	return int(n), nil
}

// fill sets the elements to values of JSON.
func (t *array) fill(values []any) (err error) {
	n, err := elements(t.shape)
	switch {
	case err != nil:
		return err
	case n != len(values):
		return fmt.Errorf("%d elements: shape %v wants %d", len(values), t.shape, n)
	case t.kind.code != text.code && t.kind.parse == nil:
		return fmt.Errorf("JSON has no %s: send binary tensors", t.kind.name)
	}
	for _, v := range values {
		if t.kind.code == text.code {
			var s string
			s, err = parseText(v)
			t.texts = append(t.texts, s)
		} else {
			t.data, err = t.kind.parse(t.data, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseText returns a string of JSON, or the bytes that TensorFlow Serving writes as {"b64": "..."}.
func parseText(v any) (string, error) {
	if encoded, ok := v.(map[string]any); ok && len(encoded) == 1 {
		if s, ok := encoded["b64"].(string); ok {
			raw, err := base64.StdEncoding.DecodeString(s)
			return string(raw), err
		}
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%.40v: want a string", v)
	}
	return s, nil
}

// values returns the elements for JSON.
func (t *array) values() ([]any, error) {
	all := []any{}
	for _, s := range t.texts {
		all = append(all, s)
	}
	if t.kind.code == text.code {
		return all, nil
	}
	if t.kind.value == nil {
		return nil, fmt.Errorf("output %s: JSON has no %s: ask for binary tensors", t.name, t.kind.name)
	}
	for element := range slices.Chunk(t.data, t.kind.size) {
		v := t.kind.value(element)
		if f, ok := v.(float32); ok {
			v = float64(f)
			if !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) {
				v = f // json writes fewer digits of it
			}
		}
		if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return nil, fmt.Errorf("output %s has %v, which JSON cannot hold: ask for binary tensors", t.name, f)
		}
		all = append(all, v)
	}
	return all, nil
}

// setBytes sets the elements to those of a binary tensor: text has the length of each string before it.
func (t *array) setBytes(raw []byte) error {
	n, err := elements(t.shape)
	if err != nil {
		return err
	}
	if t.kind.code != text.code {
		if len(raw) != n*t.kind.size {
			return fmt.Errorf("%d bytes: shape %v of %s wants %d", len(raw), t.shape, t.kind.name, n*t.kind.size)
		}
		t.data = slices.Clone(raw) // which is aligned, as ONNX Runtime expects
		return nil
	}
	for len(raw) >= 4 {
		size := int64(binary.LittleEndian.Uint32(raw))
		if size > int64(len(raw)-4) {
			break
		}
		t.texts = append(t.texts, string(raw[4:4+size]))
		raw = raw[4+size:]
	}
	if len(raw) > 0 || len(t.texts) != n {
		return fmt.Errorf("%d whole strings and %d bytes: shape %v wants %d strings", len(t.texts), len(raw), t.shape, n)
	}
	return nil
}

// bytes returns the elements as a binary tensor.
func (t *array) bytes() []byte {
	raw := t.data
	for _, s := range t.texts {
		raw = append(binary.LittleEndian.AppendUint32(raw, uint32(len(s))), s...)
	}
	return raw
}

// check reports whether the model can take the tensor as this input.
func (t *array) check(input value) error {
	open := func(want, have int64) bool { return want < 0 || want == have }
	if !slices.EqualFunc(input.shape, t.shape, open) {
		return fmt.Errorf("shape %v: want %v", t.shape, input.shape)
	}
	if slices.ContainsFunc(t.texts, func(s string) bool { return strings.IndexByte(s, 0) >= 0 }) {
		return fmt.Errorf("a string has a zero byte, at which ONNX Runtime ends it")
	}
	return nil
}
