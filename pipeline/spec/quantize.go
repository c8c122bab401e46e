package spec

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/validators"
)

// Quantize says how smaller numbers are made of the model's. Which keys mean something
// depends on the method.
type Quantize struct {
	Method      string     `yaml:"method,required" doc:"static: int8, ranges from calibration data; dynamic: int8, ranges taken anew on every run; weights: int4 weights of matrix products; fp16: half precision; none: the source is quantized already and stays as it is" enum:"static,dynamic,weights,fp16,none"`
	Observer    string     `yaml:"observer" doc:"How calibration takes ranges; of method static" enum:"minmax,entropy,percentile"`
	Percentile  Fraction   `yaml:"percentile" doc:"Share of values that a range holds; of observer percentile, 99.999% where nothing is said"`
	Format      string     `yaml:"format" doc:"qdq: operators between quantize and dequantize, what compilers want; qoperator: operators on integers" enum:"qdq,qoperator"`
	PerChannel  bool       `yaml:"per_channel" doc:"A scale for each channel of the weights"`
	ReduceRange bool       `yaml:"reduce_range" doc:"7-bit weights, for CPUs whose 8-bit products saturate: AVX2 and AVX-512 without VNNI"`
	BlockSize   int        `yaml:"block_size" doc:"Weights that share a scale; of method weights, 32 where nothing is said" enum:"16,32,64,128,256"`
	Asymmetric  bool       `yaml:"asymmetric" doc:"A zero point beside every scale; of method weights"`
	Exclude     []string   `yaml:"exclude" doc:"Names of nodes that stay as they are"`
	Operators   []string   `yaml:"operators" doc:"Types of operators that are quantized, such as MatMul; all that can be where nothing is said"`
	Tolerance   *Tolerance `yaml:"tolerance" doc:"Keep as many operators in full precision as it takes; of method fp16, held on calibration"`
}

// Tolerance bounds |engine - reference| by atol + rtol * |reference|.
type Tolerance struct {
	RTol float64 `yaml:"rtol" doc:"Relative tolerance"`
	ATol float64 `yaml:"atol" doc:"Absolute tolerance"`
}

// Methods, observers and formats of quantization.
const (
	MethodStatic       = "static"
	MethodDynamic      = "dynamic"
	MethodWeights      = "weights"
	MethodFP16         = "fp16"
	MethodNone         = "none"
	ObserverMinMax     = "minmax" // the default
	ObserverEntropy    = "entropy"
	ObserverPercentile = "percentile"
	FormatQDQ          = "qdq" // the default
	FormatQOperator    = "qoperator"
)

// methods are those that there are.
func methods() []string {
	return []string{MethodStatic, MethodDynamic, MethodWeights, MethodFP16, MethodNone}
}

// precision is what a method makes of a variant of that name. What is quantized already
// is named after its precision.
func (q Quantize) precision(name string) string {
	switch q.Method {
	case MethodNone:
		return name
	case MethodFP16:
		return validators.PrecisionFP16
	case MethodWeights:
		return validators.PrecisionInt4
	}
	return validators.PrecisionInt8
}

// Calibrated reports whether the method takes something from calibration data.
func (q Quantize) Calibrated() bool { return q.Method == MethodStatic || q.Tolerance != nil }

// given are the keys of a Quantize that say something, with the methods that listen.
func (q Quantize) given() []struct {
	key     string
	is      bool
	methods []string
} {
	return []struct {
		key     string
		is      bool
		methods []string
	}{
		{"observer", q.Observer != "", []string{MethodStatic}},
		{"percentile", q.Percentile != 0, []string{MethodStatic}},
		{"format", q.Format != "", []string{MethodStatic, MethodWeights}},
		{"per_channel", q.PerChannel, []string{MethodStatic, MethodDynamic}},
		{"reduce_range", q.ReduceRange, []string{MethodStatic, MethodDynamic}},
		{"block_size", q.BlockSize != 0, []string{MethodWeights}},
		{"asymmetric", q.Asymmetric, []string{MethodWeights}},
		{"exclude", len(q.Exclude) > 0, []string{MethodStatic, MethodDynamic, MethodWeights, MethodFP16}},
		{"operators", len(q.Operators) > 0, []string{MethodStatic, MethodDynamic}},
		{"tolerance", q.Tolerance != nil, []string{MethodFP16}},
	}
}

// checkQuantize checks that the method is known and that the other keys mean
// something to it.
func (c checker) checkQuantize(i int, name string, q Quantize) {
	key := func(k string) []any { return at("variants", i, "quantize", k) }
	if !c.oneOf(key("method"), "quantization method", q.Method, methods(), nil) {
		return
	}
	if quantized := []string{validators.PrecisionInt8, validators.PrecisionInt4}; q.Method == MethodNone && !slices.Contains(quantized, name) {
		c.problem(at("variants", i, "name"), "variant %q stays as its source is: name it after the source's precision, %s", name, strings.Join(quantized, " or "))
	}
	for _, g := range q.given() {
		if g.is && !slices.Contains(g.methods, q.Method) {
			c.problem(key(g.key), "%s means nothing to method %s, only to %s: remove it", g.key, q.Method, strings.Join(g.methods, " and "))
		}
	}
	if q.Method == MethodStatic {
		c.oneOf(key("observer"), "observer", q.Observer, []string{ObserverMinMax, ObserverEntropy, ObserverPercentile}, nil)
	}
	c.checkQuantizeValues(q, key)
	if q.Calibrated() && c.Calibration == nil {
		c.problem(at("variants", i), "variant %q needs calibration and there is none: add calibration: {path: FOLDER} with typical inputs", name)
	}
}

// checkQuantizeValues checks the values of keys that are given.
func (c checker) checkQuantizeValues(q Quantize, key func(string) []any) {
	if q.Percentile != 0 && (q.Observer != ObserverPercentile || q.Percentile <= 0.5 || q.Percentile > 1) {
		c.problem(key("percentile"), "percentile %v: want observer percentile, and more than 50%% and at most 100%%", float64(q.Percentile))
	}
	if q.Format != "" {
		c.oneOf(key("format"), "format", q.Format, []string{FormatQDQ, FormatQOperator}, nil)
	}
	if q.BlockSize != 0 && !slices.Contains([]int{16, 32, 64, 128, 256}, q.BlockSize) {
		c.problem(key("block_size"), "block_size %d: want 16, 32, 64, 128 or 256", q.BlockSize)
	}
	if t := q.Tolerance; t != nil && (t.RTol < 0 || t.ATol < 0 || t.RTol+t.ATol == 0) {
		c.problem(key("tolerance"), "tolerance: want rtol or atol, and no less than 0")
	}
}
