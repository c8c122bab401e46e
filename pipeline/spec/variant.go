package spec

import (
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/validators"
)

// Variant is one form that the numbers of an engine take. The name of a precision
// alone will do: fp32, fp16, or int8, which is static quantization as it comes.
type Variant struct {
	Name      string    `yaml:"name,required" doc:"Name of the variant; part of tags"`
	Precision string    // "fp32", "fp16", "int8": follows from name or quantize
	Quantize  *Quantize `yaml:"quantize" doc:"How to quantize; without it the name says the precision"`
}

// Quantize says how smaller numbers are made of the model's.
type Quantize struct {
	Method      string `yaml:"method,required" doc:"static: int8, ranges from calibration data; dynamic: int8, ranges taken anew on every run; fp16: half precision" enum:"static,dynamic,fp16"`
	Observer    string `yaml:"observer" doc:"How calibration takes ranges; of method static" enum:"minmax,entropy,percentile"`
	PerChannel  bool   `yaml:"per_channel" doc:"A scale for each channel of the weights"`
	ReduceRange bool   `yaml:"reduce_range" doc:"7-bit weights, for CPUs whose 8-bit products saturate: AVX2 and AVX-512 without VNNI"`
}

// Methods and observers of quantization.
const (
	MethodStatic       = "static"
	MethodDynamic      = "dynamic"
	MethodFP16         = "fp16"
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
	if v.Quantize == nil {
		v.Precision = v.Name
		switch v.Name {
		case validators.PrecisionInt8:
			v.Quantize = &Quantize{Method: MethodStatic}
		case validators.PrecisionFP16:
			v.Quantize = &Quantize{Method: MethodFP16}
		}
	} else {
		v.Precision = v.Quantize.precision()
	}
	if q := v.Quantize; q != nil && q.Method == MethodStatic && q.Observer == "" {
		q.Observer = ObserverMinMax
	}
}

// precision is what a method makes.
func (q Quantize) precision() string {
	if q.Method == MethodFP16 {
		return validators.PrecisionFP16
	}
	return validators.PrecisionInt8
}
