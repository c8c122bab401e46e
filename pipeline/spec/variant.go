package spec

import (
	"cmp"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/validators"
)

// Variant is one form that an engine takes: of its numbers, and where it is compressed of the model itself. The name of a precision
// alone will do: fp32, fp16, or int8, which is static quantization as it comes.
type Variant struct {
	Name      string     `yaml:"name,required" doc:"Name of the variant; part of tags"`
	Precision string     // "fp32", "fp16", "int8", "int8-compressed": follows from name, quantize, model and compress
	Model     Path       `yaml:"model" doc:"Another model in ONNX with the same inputs and outputs, such as a distilled student; the source where nothing is said"`
	Compress  []Compress `yaml:"compress" doc:"Steps that make the model smaller, in this order, before it is quantized"`
	Quantize  *Quantize  `yaml:"quantize" doc:"How to quantize; without it the name says the precision"`
	Load      *Loading   `yaml:"load" doc:"How nodes load its engines; as the runtime does by itself where nothing is said"`
}

// DecodeYAML reads a name, or the mapping.
func (v *Variant) DecodeYAML(n *strictyaml.Node) {
	type plain Variant
	n.DecodeEither(&v.Name, (*plain)(v))
}

// complete works out the precision and the defaults of quantization.
func (v *Variant) complete() {
	switch {
	case v.Quantize == nil && v.Compressed():
		v.Precision = validators.PrecisionFP32
	case v.Quantize == nil:
		v.Precision = v.Name
		if method, ok := methodOf[v.Name]; ok {
			v.Quantize = &Quantize{Method: method}
		}
	default:
		v.Precision = v.Quantize.precision(v.Name)
	}
	if v.Compressed() {
		if q := v.Quantize; q != nil && q.Method == MethodNone { // the name does not say it
			v.Precision = Quantize{Method: MethodWeights, Bits: cmp.Or(q.Bits, 8)}.precision("")
		}
		v.Precision = artifact.CompressedPrecision(v.Precision)
	}
	if q := v.Quantize; q != nil && q.Method == MethodStatic && cmp.Or(q.Tool, ToolONNXRuntime) == ToolONNXRuntime && q.Observer == "" {
		q.Observer = ObserverMinMax
	}
}

// methodOf is the method that a variant's name alone stands for.
var methodOf = map[string]string{
	validators.PrecisionInt8: MethodStatic,
	validators.PrecisionInt4: MethodWeights,
	validators.PrecisionFP16: MethodFP16,
}

// Compressed reports whether the variant's engines compute another function than the reference model.
func (v Variant) Compressed() bool { return len(v.Compress) > 0 || v.Model.Written != "" }
