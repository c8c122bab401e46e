package spec

import "mlpromote.dev/mlpromote/validators"

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
