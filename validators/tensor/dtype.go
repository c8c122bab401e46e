package tensor

// DType is the type of one element, by its name in numpy, ml_dtypes and ONNX. The zero value is
// invalid and is refused everywhere.
type DType string

// The dtypes of this package. The two 8-bit floats follow the OCP specification "8-bit
// Floating Point (OFP8)": E4M3 has no infinity, and NaN only if all exponent and mantissa bits
// are set (hence "fn", finite).
const (
	Bool       DType = "bool"
	Int8       DType = "int8"
	Int16      DType = "int16"
	Int32      DType = "int32"
	Int64      DType = "int64"
	Uint8      DType = "uint8"
	Uint16     DType = "uint16"
	Uint32     DType = "uint32"
	Uint64     DType = "uint64"
	Float8E4M3 DType = "float8_e4m3fn"
	Float8E5M2 DType = "float8_e5m2"
	Float16    DType = "float16"
	BFloat16   DType = "bfloat16"
	Float32    DType = "float32"
	Float64    DType = "float64"
)

const dtypeNames = "bool, int8 to int64, uint8 to uint64, float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64"

// Class groups dtypes with values that can be compared with each other.
type Class string

// The classes. The zero value belongs to unknown dtypes.
const (
	ClassBool    Class = "bool"
	ClassInteger Class = "integer"
	ClassFloat   Class = "float"
)

// ParseDType returns the dtype of that name, or an error of kind ErrUnsupported.
func ParseDType(name string) (DType, error) {
	d := DType(name)
	if !d.Valid() {
		return "", Errorf(ErrUnsupported, "unknown dtype %.64q: expected one of %s", name, dtypeNames)
	}
	return d, nil
}

// Valid reports whether d is a dtype of this package.
func (d DType) Valid() bool { return d.Size() != 0 }

// Size returns the bytes of one element, 0 for an unknown dtype.
func (d DType) Size() int {
	switch d {
	case Bool, Int8, Uint8, Float8E4M3, Float8E5M2:
		return 1
	case Int16, Uint16, Float16, BFloat16:
		return 2
	case Int32, Uint32, Float32:
		return 4
	case Int64, Uint64, Float64:
		return 8
	}
	return 0
}

// Class returns the class of d, empty for an unknown dtype.
func (d DType) Class() Class {
	switch d {
	case Bool:
		return ClassBool
	case Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64:
		return ClassInteger
	case Float8E4M3, Float8E5M2, Float16, BFloat16, Float32, Float64:
		return ClassFloat
	}
	return ""
}

// Safetensors returns the name of d in a safetensors header ("F32"), empty for
// an unknown dtype.
func (d DType) Safetensors() string {
	for _, n := range safetensorsNames {
		if n.dtype == d {
			return n.name
		}
	}
	return ""
}

// FromSafetensors returns the dtype with that name in safetensors, or an error of kind
// ErrUnsupported (complex, sub-byte and unusual 8-bit types).
func FromSafetensors(name string) (DType, error) {
	for _, n := range safetensorsNames {
		if n.name == name {
			return n.dtype, nil
		}
	}
	return "", Errorf(ErrUnsupported,
		"unsupported safetensors dtype %.64q: convert the tensor to one of %s", name, dtypeNames)
}

// safetensorsNames is the part of the format's dtype list that this package reads, from the
// Dtype enumeration of the reference implementation.
var safetensorsNames = [...]struct {
	dtype DType
	name  string
}{
	{Bool, "BOOL"},
	{Int8, "I8"}, {Int16, "I16"}, {Int32, "I32"}, {Int64, "I64"},
	{Uint8, "U8"}, {Uint16, "U16"}, {Uint32, "U32"}, {Uint64, "U64"},
	{Float8E4M3, "F8_E4M3"}, {Float8E5M2, "F8_E5M2"},
	{Float16, "F16"}, {BFloat16, "BF16"}, {Float32, "F32"}, {Float64, "F64"},
}
