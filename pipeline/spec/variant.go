package spec

import (
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/validators"
)

// Variant is one form that the numbers of an engine take. The name of a precision
// alone will do: fp32, or int8, which is static quantization as it comes.
type Variant struct {
	Name      string    `yaml:"name,required" doc:"Name of the variant; part of tags"`
	Precision string    // "fp32", "int8": follows from name or quantize
	Quantize  *Quantize `yaml:"quantize" doc:"How to quantize; without it the name says the precision"`
}

// Quantize says how integers are made of the model's numbers.
type Quantize struct {
	Method      string `yaml:"method,required" doc:"static takes ranges from calibration data" enum:"static"`
	Observer    string `yaml:"observer" doc:"How calibration takes ranges" enum:"minmax,entropy,percentile"`
	PerChannel  bool   `yaml:"per_channel" doc:"A scale for each channel of the weights"`
	ReduceRange bool   `yaml:"reduce_range" doc:"7-bit weights, for CPUs whose 8-bit products saturate: AVX2 and AVX-512 without VNNI"`
}

// Methods and observers of quantization.
const (
	MethodStatic       = "static"
	methodDynamic      = "dynamic"
	methodFP16         = "fp16"
	ObserverMinMax     = "minmax" // the default
	ObserverEntropy    = "entropy"
	ObserverPercentile = "percentile"
)

// DecodeYAML reads a name, or the mapping.
func (v *Variant) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() == strictyaml.Scalar {
		n.Decode(&v.Name)
		return
	}
	type plain Variant
	n.Decode((*plain)(v))
}

// complete works out the precision and the defaults of quantization.
func (v *Variant) complete() {
	v.Precision = v.Name
	if v.Quantize == nil {
		if v.Name == validators.PrecisionInt8 {
			v.Quantize = &Quantize{Method: MethodStatic}
		}
	} else {
		v.Precision = validators.PrecisionInt8
	}
	if v.Quantize != nil && v.Quantize.Observer == "" {
		v.Quantize.Observer = ObserverMinMax
	}
}
