//go:build cgo

package ort

import (
	"unsafe"

	rt "github.com/yalue/onnxruntime_go"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// kind is an element type: our name, the library's, and how to access values.
type kind struct {
	dtype tensor.DType
	code  rt.TensorElementDataType
	// scalar creates a value of rank 0, and bytes reads one that the library allocated. Both
	// are nil for types that Go does not have.
	scalar func(data []byte) (rt.Value, error)
	bytes  func(v rt.Value) []byte
	text   bool
}

// kinds are the element types that inputs and outputs of engines may have.
var kinds = [...]kind{
	native[float32](tensor.Float32, rt.TensorElementDataTypeFloat),
	native[float64](tensor.Float64, rt.TensorElementDataTypeDouble),
	native[int8](tensor.Int8, rt.TensorElementDataTypeInt8),
	native[int16](tensor.Int16, rt.TensorElementDataTypeInt16),
	native[int32](tensor.Int32, rt.TensorElementDataTypeInt32),
	native[int64](tensor.Int64, rt.TensorElementDataTypeInt64),
	native[uint8](tensor.Uint8, rt.TensorElementDataTypeUint8),
	native[uint16](tensor.Uint16, rt.TensorElementDataTypeUint16),
	native[uint32](tensor.Uint32, rt.TensorElementDataTypeUint32),
	native[uint64](tensor.Uint64, rt.TensorElementDataTypeUint64),
	native[bool](tensor.Bool, rt.TensorElementDataTypeBool),
	// Text, for inputs alone: cases hold its bytes.
	{dtype: tensor.Uint8, code: rt.TensorElementDataTypeString, text: true},
	{dtype: tensor.Float16, code: rt.TensorElementDataTypeFloat16},
	{dtype: tensor.BFloat16, code: rt.TensorElementDataTypeBFloat16},
	{dtype: tensor.Float8E4M3, code: rt.TensorElementDataTypeFloat8E4M3FN},
	{dtype: tensor.Float8E5M2, code: rt.TensorElementDataTypeFloat8E5M2},
}

func native[T rt.TensorData](dtype tensor.DType, code rt.TensorElementDataType) kind {
	raw := func(values []T) []byte {
		first := (*byte)(unsafe.Pointer(unsafe.SliceData(values))) //nolint:gosec // plain numbers, read as the bytes that they are
		return unsafe.Slice(first, len(values)*dtype.Size())       //nolint:gosec // as many as there are
	}
	return kind{dtype: dtype, code: code,
		scalar: func(data []byte) (rt.Value, error) {
			return rt.NewScalar(*(*T)(unsafe.Pointer(&data[0]))) //nolint:gosec // data holds one element, which was checked
		},
		bytes: func(v rt.Value) []byte {
			switch v := v.(type) {
			case *rt.Tensor[T]:
				return raw(v.GetData())
			case *rt.Scalar[T]:
				return raw([]T{v.GetData()})
			}
			return nil
		},
	}
}

// name is what people call the type.
func (k kind) name() tensor.DType {
	if k.text {
		return validators.Text
	}
	return k.dtype
}

// value is an input or output of an engine.
type value struct {
	name  string
	kind  kind
	shape []int64 // -1 where it is open
}

func (v value) slot() caserun.Slot {
	return caserun.Slot{Name: v.name, DType: v.kind.name(), Shape: v.shape}
}

// copied reports whether the library copies the input of a case of this shape, so that it is made
// anew for each.
func (v value) copied(shape []int64) bool { return v.kind.text || len(shape) == 0 }

// values checks that all inputs or outputs are tensors of known types.
func values(what string, infos []rt.InputOutputInfo) ([]value, error) {
	var found []value
	for _, info := range infos {
		if info.OrtValueType != rt.ONNXTypeTensor {
			return nil, driverproc.Errorf(driverproc.UnsupportedFormat, "%q is not a tensor", info.Name)
		}
		k, ok := kindOf(info.DataType)
		if !ok {
			return nil, driverproc.Errorf(driverproc.UnsupportedFormat, "%q has elements of type %s", info.Name, info.DataType)
		}
		if k.text && what == "output" {
			return nil, driverproc.Errorf(driverproc.UnsupportedFormat, "output %q is text, which cannot be compared", info.Name)
		}
		found = append(found, value{info.Name, k, info.Dimensions})
	}
	return found, nil
}

func kindOf(code rt.TensorElementDataType) (kind, bool) {
	for _, k := range kinds {
		if k.code == code {
			return k, true
		}
	}
	return kind{}, false
}

// describe formats values for messages. Unknown types keep the library's name.
func describe(infos []rt.InputOutputInfo) []toolchain.ModelValue {
	described := []toolchain.ModelValue{}
	for _, info := range infos {
		v := toolchain.ModelValue{Name: info.Name, DType: info.DataType.String(),
			Shape: append([]int64{}, info.Dimensions...)}
		if k, ok := kindOf(info.DataType); ok && info.OrtValueType == rt.ONNXTypeTensor {
			v.DType = string(k.name())
		}
		described = append(described, v)
	}
	return described
}
