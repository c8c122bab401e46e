package spec

import (
	"cmp"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/validators"
)

// Quantize says how smaller numbers are made of the model's. Which keys mean something
// depends on the method, and on the tool.
type Quantize struct {
	Method        string     `yaml:"method,required" doc:"static: int8, ranges from calibration data; dynamic: int8, ranges taken anew on every run; weights: int4 or int8 weights of matrix products; fp16: half precision; none: the source is quantized already and stays as it is" enum:"static,dynamic,weights,fp16,none"`
	Tool          string     `yaml:"tool" doc:"What quantizes; onnxruntime where nothing is said. nncf knows methods static and weights; torchao knows dynamic, and weights of 8 bits, of folders of transformers that torch-inductor compiles" enum:"onnxruntime,nncf,torchao"`
	Observer      string     `yaml:"observer" doc:"How calibration takes ranges; of method static" enum:"minmax,entropy,percentile"`
	Percentile    Fraction   `yaml:"percentile" doc:"Share of values that a range holds; of observer percentile, 99.999% where nothing is said"`
	Format        string     `yaml:"format" doc:"qdq: operators between quantize and dequantize, what compilers want; qoperator: operators on integers" enum:"qdq,qoperator"`
	PerChannel    bool       `yaml:"per_channel" doc:"A scale for each channel of the weights; nncf does it always"`
	ReduceRange   *bool      `yaml:"reduce_range" doc:"7-bit weights, for x86 processors whose 8-bit products saturate: those without VNNI; where nothing is said, the target's features decide"`
	Preset        string     `yaml:"preset" doc:"Zero points of activations; of nncf. performance: none; mixed: where they help; it looks at the model where nothing is said" enum:"performance,mixed"`
	AccuracyAware bool       `yaml:"accuracy_aware" doc:"Take layers back to full precision, the costliest first, until limits.accuracy is kept on the labelled cases; of nncf and method static"`
	Bits          int        `yaml:"bits" doc:"Of weights; of method weights, 4 where nothing is said, and 8 with nncf and torchao alone; of method none what a variant's own model has, 8 where nothing is said" enum:"4,8"`
	BlockSize     int        `yaml:"block_size" doc:"Weights that share a scale; of method weights with 4 bits, 32 where nothing is said" enum:"16,32,64,128,256"`
	Algorithm     string     `yaml:"algorithm" doc:"How 4-bit weights are chosen; of method weights. rtn: rounded to nearest, where nothing is said; hqq: with the zero points that make errors smallest" enum:"rtn,hqq"`
	Asymmetric    bool       `yaml:"asymmetric" doc:"A zero point beside every scale; of method weights. hqq has it always"`
	Exclude       []string   `yaml:"exclude" doc:"Names of nodes that stay as they are"`
	Operators     []string   `yaml:"operators" doc:"Types of operators that are quantized, such as MatMul; all that can be where nothing is said"`
	Tolerance     *Tolerance `yaml:"tolerance" doc:"Keep as many operators in full precision as it takes; of method fp16, held on calibration"`
}

// Tolerance bounds |engine - reference| by atol + rtol * |reference|.
type Tolerance struct {
	RTol float64 `yaml:"rtol" doc:"Relative tolerance"`
	ATol float64 `yaml:"atol" doc:"Absolute tolerance"`
}

// Methods, tools, observers, formats and presets of quantization.
const (
	MethodStatic       = "static"
	MethodDynamic      = "dynamic"
	MethodWeights      = "weights"
	MethodFP16         = "fp16"
	MethodNone         = "none"
	ToolNNCF           = "nncf"
	ToolTorchAO        = "torchao"            // PyTorch's own, in the compiler of the model
	ToolONNXRuntime    = ToolchainONNXRuntime // the default
	ObserverMinMax     = "minmax"             // the default
	ObserverEntropy    = "entropy"
	ObserverPercentile = "percentile"
	FormatQDQ          = "qdq" // the default
	FormatQOperator    = "qoperator"
	AlgorithmRTN       = "rtn" // the default
	AlgorithmHQQ       = "hqq" // Badri and Shaji, Half-Quadratic Quantization, 2023
	PresetPerformance  = "performance"
	PresetMixed        = "mixed"
)

// methods are those that there are.
func methods() []string {
	return []string{MethodStatic, MethodDynamic, MethodWeights, MethodFP16, MethodNone}
}

// tools are those that quantize.
func tools() []string { return []string{ToolONNXRuntime, ToolNNCF, ToolTorchAO} }

// precision is what a method makes of a variant of that name. What is quantized already
// is named after its precision.
func (q Quantize) precision(name string) string {
	switch q.Method {
	case MethodNone:
		return name
	case MethodFP16:
		return validators.PrecisionFP16
	case MethodWeights:
		if q.Bits != 8 {
			return validators.PrecisionInt4
		}
	}
	return validators.PrecisionInt8
}

// Calibrated reports whether the method takes something from calibration data.
func (q Quantize) Calibrated() bool { return q.Method == MethodStatic || q.Tolerance != nil }

// meaning is a key of a Quantize: whether it says something, and who listens.
type meaning struct {
	key     string
	is      bool
	methods []string
	tools   []string
}

// given are the keys of a Quantize with what they mean something to.
func (q Quantize) given() []meaning {
	static, integers, weights := []string{MethodStatic}, []string{MethodStatic, MethodDynamic}, []string{MethodWeights}
	own, nncf, both := []string{ToolONNXRuntime}, []string{ToolNNCF}, []string{ToolONNXRuntime, ToolNNCF}
	all := tools()
	return []meaning{
		{"tool", q.Tool == ToolNNCF, []string{MethodStatic, MethodWeights}, all},
		{"tool", q.Tool == ToolTorchAO, []string{MethodDynamic, MethodWeights}, all},
		{"observer", q.Observer != "", static, own},
		{"percentile", q.Percentile != 0, static, own},
		{"format", q.Format != "", []string{MethodStatic, MethodWeights}, own},
		{"per_channel", q.PerChannel, integers, own},
		{"reduce_range", q.ReduceRange != nil, integers, both},
		{"preset", q.Preset != "", static, nncf},
		{"accuracy_aware", q.AccuracyAware, static, nncf},
		{"bits", q.Bits != 0, []string{MethodWeights, MethodNone}, all},
		{"block_size", q.BlockSize != 0, weights, both},
		{"algorithm", q.Algorithm != "", weights, own},
		{"asymmetric", q.Asymmetric, weights, both},
		{"exclude", len(q.Exclude) > 0, []string{MethodStatic, MethodDynamic, MethodWeights, MethodFP16}, both},
		{"operators", len(q.Operators) > 0, integers, own},
		{"tolerance", q.Tolerance != nil, []string{MethodFP16}, own},
	}
}

// checkQuantize checks that the method is known and that the other keys mean
// something to it.
func (c checker) checkQuantize(under func(...any) []any, v Variant, q Quantize) {
	name := v.Name
	key := func(k string) []any { return under("quantize", k) }
	if !c.oneOf(key("method"), "quantization method", q.Method, methods(), nil) {
		return
	}
	tool := cmp.Or(q.Tool, ToolONNXRuntime)
	if !c.oneOf(key("tool"), "quantization tool", tool, tools(), nil) {
		return
	}
	quantized := []string{validators.PrecisionInt8, validators.PrecisionInt4}
	if c.Source.Format == FormatGGUF {
		quantized = []string{validators.PrecisionInt8, validators.PrecisionFP16}
	}
	if q.Method == MethodNone && !v.Compressed() && !slices.Contains(quantized, name) {
		c.problem(under("name"),
			"variant %q stays as its source is: name it after the source's precision, %s", name, strings.Join(quantized, " or "))
	}
	for _, g := range q.given() {
		switch {
		case !g.is:
		case !slices.Contains(g.methods, q.Method):
			c.problem(key(g.key),
				"%s means nothing to method %s, only to %s: remove it", g.key, q.Method, strings.Join(g.methods, " and "))
		case !slices.Contains(g.tools, tool):
			c.problem(key(g.key),
				"%s means nothing to %s, only to tool %s: remove it", g.key, tool, strings.Join(g.tools, " and "))
		}
	}
	c.checkQuantizeWords(q, key)
	c.checkQuantizeValues(v, q, key)
	if q.Calibrated() && c.Calibration == nil {
		c.problem(under(), "variant %q needs calibration and there is none: add calibration: {path: FOLDER} with typical inputs", name)
	}
	if a := c.Limits.Accuracy; q.AccuracyAware && (a == nil || a.Drop == nil || a.Metric != validators.MetricTop1) {
		c.problem(key("accuracy_aware"),
			"accuracy_aware keeps the drop of limits.accuracy for metric top1 and there is none: add limits: {accuracy: {metric: top1, drop: {max: 0.5%%}}}")
	}
}

// checkQuantizeWords checks the values that are words.
func (c checker) checkQuantizeWords(q Quantize, key func(string) []any) {
	for _, w := range []struct {
		key, word string
		known     []string
	}{
		{"observer", q.Observer, []string{ObserverMinMax, ObserverEntropy, ObserverPercentile}},
		{"format", q.Format, []string{FormatQDQ, FormatQOperator}},
		{"preset", q.Preset, []string{PresetPerformance, PresetMixed}},
		{"algorithm", q.Algorithm, []string{AlgorithmRTN, AlgorithmHQQ}},
	} {
		if w.word != "" {
			c.oneOf(key(w.key), w.key, w.word, w.known, nil)
		}
	}
}

// checkQuantizeValues checks the values of keys that are given.
func (c checker) checkQuantizeValues(v Variant, q Quantize, key func(string) []any) {
	if q.Percentile != 0 && (q.Observer != ObserverPercentile || q.Percentile <= 0.5 || q.Percentile > 1) {
		c.problem(key("percentile"),
			"percentile %v: want observer percentile, and more than 50%% and at most 100%%", float64(q.Percentile))
	}
	c.checkBits(v, q, key("bits"))
	if q.BlockSize != 0 && !slices.Contains([]int{16, 32, 64, 128, 256}, q.BlockSize) {
		c.problem(key("block_size"), "block_size %d: want 16, 32, 64, 128 or 256", q.BlockSize)
	}
	if t := q.Tolerance; t != nil && (t.RTol < 0 || t.ATol < 0 || t.RTol+t.ATol == 0) {
		c.problem(key("tolerance"), "tolerance: want rtol or atol, and no less than 0")
	}
}

// checkBits checks the number of bits, if it is given.
func (c checker) checkBits(v Variant, q Quantize, place []any) {
	if q.Tool == ToolTorchAO {
		if q.Method == MethodWeights && q.Bits != 8 {
			c.problem(place, "torchao makes weights of 8 bits: say bits: 8")
		}
		return
	}
	if q.Bits == 0 {
		return
	}
	if q.Bits != 4 && q.Bits != 8 {
		c.problem(place, "bits %d: want 4 or 8", q.Bits)
	}
	if q.Method == MethodNone && v.Model.Written == "" {
		c.problem(place, "the name of the variant says the precision of a source that is quantized: remove bits")
	}
	if q.Bits == 8 && q.Method == MethodWeights && (q.Tool != ToolNNCF || q.BlockSize != 0) {
		c.problem(place, "weights of 8 bits are made by tool nncf, with a scale for each channel: say tool: nncf and no block_size, or bits: 4")
	}
}
