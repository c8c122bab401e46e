package onnx

import (
	"maps"
	"slices"
	"strings"
)

// Model is the metadata of an ONNX file, without its weights (onnx/onnx.proto; field names
// there in parentheses).
type Model struct {
	IRVersion       int64             // version of the file format (ir_version), at least 1
	Producer        string            // program that exported it (producer_name)
	ProducerVersion string            // version of that program (producer_version)
	Opsets          map[string]int64  // operator set version by domain; the default domain is "ai.onnx"
	Inputs          []Value           // inputs that a caller must provide: graph inputs that are not initializers, in order
	Outputs         []Value           // outputs of the graph, in order; at least one
	Ops             map[string]int    // nodes by "domain.Op", such as "ai.onnx.Conv", with those in subgraphs and functions
	Functions       []string          // functions that the model defines, as "domain.Name", sorted, each once
	Nodes           int               // all nodes: the sum of Ops
	ExternalData    []string          // files that hold tensors, relative to the model's folder, as written there, sorted, each once
	ExternalBytes   map[string]int64  // size in bytes that each of those files must have at least
	Metadata        map[string]string // metadata_props
	// InitializerBytes is the size of the graph's initializers as dense tensors, inside or
	// outside the file. A 4-bit element takes half a byte, a string its length.
	InitializerBytes int64
	// Producers has the operator that makes each output of the graph, without its domain: "Softmax".
	// Outputs that are inputs or initializers have none.
	Producers map[string]string
	// ProducerNames has the names of the nodes that make the outputs; "" for one without a name.
	ProducerNames map[string]string
	// Classes has the names of a classifier's classes, in the order of its scores. It is
	// nil if the graph has none, or several lists.
	Classes []string
	// Tensors counts tensors by element type, including subgraphs, functions and attributes.
	Tensors map[string]int

	custom map[string]bool // domains of nodes that neither ONNX nor the model defines
	flow   *flow

	otherClasses bool // classifiers of the graph have different classes
}

// Value is an input or output of a graph.
type Value struct {
	Name string
	// DType is the element type in the spelling of numpy and ml_dtypes: "float32", "bfloat16",
	// "int64", "bool", "string". A value that is not a dense tensor has a type in parentheses,
	// such as "sequence(float32)" or "map(int64,float32)", and no shape.
	DType string
	// Shape has one Dim per axis. It is empty for a scalar, nil for unknown rank.
	Shape []Dim
}

// Dim is the size of one axis. The zero Dim has unknown size.
type Dim struct {
	Known bool   // Value is the size
	Value int64  // size in elements, if Known
	Param string // name of the size if it is symbolic, such as "batch"; may be empty
}

// DefaultDomain is our name of the default domain, which ONNX also writes as "".
const DefaultDomain = "ai.onnx"

// mlDomain has the operators of classical machine learning.
const mlDomain = "ai.onnx.ml"

// isStandardDomain reports whether ONNX Runtime has the domain's operators
// without a custom library.
func isStandardDomain(domain string) bool {
	switch domain {
	case DefaultDomain, mlDomain, "ai.onnx.preview.training", "com.microsoft":
		return true
	}
	return false
}

// canonicalDomain returns one spelling of the default domain.
func canonicalDomain(domain string) string {
	if domain == "" {
		return DefaultDomain
	}
	return domain
}

// CustomDomains lists, sorted, the domains of operators that need a custom operator library:
// those that ONNX, ONNX Runtime and the functions of the model do not define. It does not list
// domains that are imported but not used.
func (m *Model) CustomDomains() []string {
	return slices.Sorted(maps.Keys(m.custom))
}

// dtypes has the names of TensorProto.DataType, and bits per element.
var dtypes = [...]struct {
	name string
	bits int64
}{
	0: {"undefined", 0}, 1: {"float32", 32}, 2: {"uint8", 8}, 3: {"int8", 8}, 4: {"uint16", 16},
	5: {"int16", 16}, 6: {"int32", 32}, 7: {"int64", 64}, 8: {"string", 0}, 9: {"bool", 8},
	10: {"float16", 16}, 11: {"float64", 64}, 12: {"uint32", 32}, 13: {"uint64", 64},
	14: {"complex64", 64}, 15: {"complex128", 128}, 16: {"bfloat16", 16},
	17: {"float8_e4m3fn", 8}, 18: {"float8_e4m3fnuz", 8}, 19: {"float8_e5m2", 8}, 20: {"float8_e5m2fnuz", 8},
	21: {"uint4", 4}, 22: {"int4", 4}, 23: {"float4_e2m1fn", 4}, 24: {"float8_e8m0fnu", 8},
	25: {"uint2", 2}, 26: {"int2", 2}, 27: {"float6_e2m3fn", 6}, 28: {"float6_e3m2fn", 6},
}

// dtypeName returns the name of an element type. For a type newer than this table it is "dtype"
// and its number.
func dtypeName(code uint64) string {
	if code < uint64(len(dtypes)) {
		return dtypes[code].name
	}
	return "dtype" + decimal(code)
}

// String formats the type and shape: "float32[batch,3,224,224]", with "?" for an unknown size
// and "..." for an unknown rank.
func (v Value) String() string {
	if strings.Contains(v.DType, "(") {
		return v.DType
	}
	if v.Shape == nil {
		return v.DType + "[...]"
	}
	axes := make([]string, len(v.Shape))
	for i, d := range v.Shape {
		axes[i] = d.String()
	}
	return v.DType + "[" + strings.Join(axes, ",") + "]"
}

// String returns the size, its name, or "?".
func (d Dim) String() string {
	switch {
	case d.Known:
		return decimal(uint64(d.Value))
	case d.Param != "":
		return d.Param
	}
	return "?"
}
