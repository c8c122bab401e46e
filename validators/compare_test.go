package validators_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

func least(v float64) *validators.AtLeast { return &validators.AtLeast{Min: v} }

func atMost(v float64) *validators.AtMost { return &validators.AtMost{Max: v} }

func ptr[T any](v T) *T { return &v }

// promised are documents with every limit there is.
func promised() validators.Documents {
	return validators.Documents{
		Engines: []artifact.Engine{{Precision: "fp32"}, {Precision: "int8"}},
		Limits: validators.Limits{V: validators.LimitsVersion, MinCases: 100, Confidence: 0.95,
			Precisions: map[string]validators.PrecisionLimits{
				"fp32": {Outputs: map[string]validators.OutputLimits{"y": {RTol: ptr(1e-3), ATol: ptr(1e-5)}}},
				"int8": {Outputs: map[string]validators.OutputLimits{"y": {
					Cosine: least(0.99), Top1: least(0.98), SNRdB: least(12), Equal: least(0.9), MaxAbs: atMost(1),
					MaxError: atMost(2.5), CaseError: atMost(0.8), Systematic: atMost(0.08), PerChannel: ptr(true), Where: "mask"}}},
			},
			Consistency: &validators.ConsistencyLimits{Jitter: validators.JitterNone, Required: true, Rare: 500},
			Accuracy: &validators.AccuracyLimit{Metric: "top1", Output: "y", Min: least(0.9), Max: atMost(5), Drop: atMost(0.01), Regression: atMost(0.02),
				Relative: least(0.99), Slices: &validators.SliceLimit{By: "region", Min: least(0.8), Max: atMost(6), Drop: atMost(0.05)}},
			Latency: validators.LatencyLimits{P50: &validators.TimeAtMost{MaxNs: time.Millisecond}, P99: &validators.TimeAtMost{MaxNs: 5 * time.Millisecond}, Regression: atMost(0.1)},
		},
		Interface: validators.Interface{V: validators.InterfaceVersion,
			Inputs: []validators.TensorInfo{
				{Name: "x", DType: tensor.Float32, Shape: []validators.Dim{{Symbol: "batch"}, {Symbol: "seq"}, {Size: 4}}, Names: []string{"a", "b", "c", "d"}},
				{Name: "mask", DType: tensor.Int64, Shape: []validators.Dim{{Symbol: "batch"}, {Symbol: "seq"}}},
			},
			Outputs: []validators.TensorInfo{{Name: "y", DType: tensor.Float32, Shape: []validators.Dim{{Symbol: "batch"}, {Size: 2}}, Kind: validators.KindScores, Names: []string{"no", "yes"}}},
			Dims:    map[string]validators.DimRange{"batch": {Min: 1, Opt: 4, Max: 16}, "seq": {Min: 2, Opt: 8, Max: 32}},
		},
	}
}

// change applies an edit to the limits of int8's output.
func int8Output(edit func(*validators.OutputLimits)) func(*validators.Documents) {
	return func(d *validators.Documents) {
		limits := d.Limits.Precisions["int8"].Outputs["y"]
		edit(&limits)
		d.Limits.Precisions["int8"].Outputs["y"] = limits
	}
}

// Every limit that allows more, that is gone or that cannot be compared is found, in words that say
// where, what it is and what it was. A stricter one is not.
func TestCompareLimits(t *testing.T) {
	t.Parallel()
	output := "int8, output y: "
	for want, edit := range map[string]func(*validators.Documents){
		"":                                      func(*validators.Documents) {},
		"int4: no engine had this precision":    func(d *validators.Documents) { d.Engines[1].Precision = "int4" },
		"int8: no limits on output y, had some": func(d *validators.Documents) { delete(d.Limits.Precisions["int8"].Outputs, "y") },
		"min_cases: 99, was 100":                func(d *validators.Documents) { d.Limits.MinCases = 99 },
		"confidence: 0.9, was 0.95":             func(d *validators.Documents) { d.Limits.Confidence = 0.9 },
		"consistency: jitter \"limits\", was \"none\"": func(d *validators.Documents) {
			d.Limits.Consistency = &validators.ConsistencyLimits{Jitter: validators.JitterLimits, Required: true, Rare: 500}
		},
		"consistency: rare 499, was 500": func(d *validators.Documents) {
			d.Limits.Consistency = &validators.ConsistencyLimits{Jitter: validators.JitterNone, Required: true, Rare: 499}
		},
		"consistency: jitter \"\", was \"none\"": func(d *validators.Documents) {
			d.Limits.Consistency = &validators.ConsistencyLimits{Required: true, Rare: 500}
		},
		"consistency: jitter \"\", was \"none\"\nconsistency: not required, was\nconsistency: rare 0, was 500": func(d *validators.Documents) { d.Limits.Consistency = nil },
		output + `elements by "other" count, was "mask"`:                                                       int8Output(func(o *validators.OutputLimits) { o.Where = "other" }),
		output + "per_channel false, was true":                                                                 int8Output(func(o *validators.OutputLimits) { o.PerChannel = nil }),
		output + "cosine at least 0.98, was 0.99":                                                              int8Output(func(o *validators.OutputLimits) { o.Cosine = least(0.98) }),
		output + "top1 not limited, was at least 0.98":                                                         int8Output(func(o *validators.OutputLimits) { o.Top1 = nil }),
		output + "snr at least 11.9, was 12":                                                                   int8Output(func(o *validators.OutputLimits) { o.SNRdB = least(11.9) }),
		output + "equal at least 0, was 0.9":                                                                   int8Output(func(o *validators.OutputLimits) { o.Equal = least(0) }),
		output + "max_abs at most 1.1, was 1":                                                                  int8Output(func(o *validators.OutputLimits) { o.MaxAbs = atMost(1.1) }),
		output + "max_error not limited, was at most 2.5":                                                      int8Output(func(o *validators.OutputLimits) { o.MaxError = nil }),
		output + "case_error at most 0.9, was 0.8":                                                             int8Output(func(o *validators.OutputLimits) { o.CaseError = atMost(0.9) }),
		output + "systematic at most 1e+30, was 0.08":                                                          int8Output(func(o *validators.OutputLimits) { o.Systematic = atMost(1e30) }),
		"fp32, output y: rtol 0.001 and atol 1e+30, were 0.001 and 1e-05": func(d *validators.Documents) {
			d.Limits.Precisions["fp32"].Outputs["y"] = validators.OutputLimits{RTol: ptr(1e-3), ATol: ptr(1e30)}
		},
		"fp32, output y: rtol and atol not limited, were 0.001 and 1e-05": func(d *validators.Documents) {
			d.Limits.Precisions["fp32"].Outputs["y"] = validators.OutputLimits{MaxAbs: atMost(0)}
		},
		"accuracy: not limited, was by top1":  func(d *validators.Documents) { d.Limits.Accuracy = nil },
		"accuracy: metric f1_macro, was top1": func(d *validators.Documents) { d.Limits.Accuracy.Metric = "f1_macro" },
		`accuracy: of output "z", was "y"`: func(d *validators.Documents) {
			d.Limits.Accuracy.Output = "z"
			d.Interface.Outputs = append(d.Interface.Outputs, validators.TensorInfo{Name: "z",
				DType: tensor.Float32, Shape: d.Interface.Outputs[0].Shape, Kind: validators.KindScores})
		},
		output + `elements by "" count, was "mask"`:                        int8Output(func(o *validators.OutputLimits) { o.Where = "" }),
		"accuracy: min at least 0.8, was 0.9":                              func(d *validators.Documents) { d.Limits.Accuracy.Min = least(0.8) },
		"accuracy: relative not limited, was at least 0.99":                func(d *validators.Documents) { d.Limits.Accuracy.Relative = nil },
		"accuracy: max at most 6, was 5":                                   func(d *validators.Documents) { d.Limits.Accuracy.Max = atMost(6) },
		"accuracy: drop not limited, was at most 0.01":                     func(d *validators.Documents) { d.Limits.Accuracy.Drop = nil },
		"accuracy: regression at most 1, was 0.02":                         func(d *validators.Documents) { d.Limits.Accuracy.Regression = atMost(1) },
		"accuracy: no slices, were by region":                              func(d *validators.Documents) { d.Limits.Accuracy.Slices = nil },
		"accuracy: slices by age, were by region":                          func(d *validators.Documents) { d.Limits.Accuracy.Slices.By = "age" },
		"accuracy of slices by region: min at least 0.7, was 0.8":          func(d *validators.Documents) { d.Limits.Accuracy.Slices.Min = least(0.7) },
		"accuracy of slices by region: max at most 7, was 6":               func(d *validators.Documents) { d.Limits.Accuracy.Slices.Max = atMost(7) },
		"accuracy of slices by region: drop not limited, was at most 0.05": func(d *validators.Documents) { d.Limits.Accuracy.Slices.Drop = nil },
		"latency: p50 at most 1.000001ms, was 1ms": func(d *validators.Documents) {
			d.Limits.Latency.P50 = &validators.TimeAtMost{MaxNs: time.Millisecond + 1}
		},
		"latency: p99 not limited, was at most 5ms": func(d *validators.Documents) { d.Limits.Latency.P99 = nil },
		"latency: regression at most 0.2, was 0.1":  func(d *validators.Documents) { d.Limits.Latency.Regression = atMost(0.2) },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			now := promised()
			edit(&now)
			found := validators.Compare(now, promised())
			if got := strings.Join(found.Looser, "\n"); got != want {
				t.Errorf("looser: %q, want %q", got, want)
			}
			if len(found.Interface) != 0 {
				t.Errorf("interface: %q, want no difference", found.Interface)
			}
			// A limit that is there and was not, or that is stricter, is no loosening.
			back := validators.Compare(promised(), now).Looser
			incomparable := []string{"limits: ", "fp32, output y: rtol and atol", "int8: no engine", "accuracy: metric",
				"accuracy: of output", "accuracy: slices by", output + "elements by", output + "per_channel"}
			if len(back) > 0 && !slices.ContainsFunc(incomparable,
				func(p string) bool { return strings.HasPrefix(want, p) || strings.HasPrefix(want, "int4") }) {
				t.Errorf("the other way: %q, want nothing", back)
			}
		})
	}
}

// Whatever a caller of the interface that was would notice is found; what only allows more is not.
func TestCompareInterfaces(t *testing.T) {
	t.Parallel()
	input := func(n int, edit func(*validators.TensorInfo)) func(*validators.Interface) {
		return func(i *validators.Interface) { edit(&i.Inputs[n]) }
	}
	output := func(edit func(*validators.TensorInfo)) func(*validators.Interface) {
		return func(i *validators.Interface) { edit(&i.Outputs[0]) }
	}
	for name, c := range map[string]struct {
		edit func(*validators.Interface)
		want string
	}{
		"the same":        {func(*validators.Interface) {}, ""},
		"more sizes":      {func(i *validators.Interface) { i.Dims["seq"] = validators.DimRange{Min: 1, Opt: 8, Max: 64} }, ""},
		"an output more":  {func(i *validators.Interface) { i.Outputs = append(i.Outputs, validators.TensorInfo{Name: "z"}) }, ""},
		"another meaning": {output(func(o *validators.TensorInfo) { o.Meaning = "says more" }), ""},
		"another symbol":  {input(0, func(x *validators.TensorInfo) { x.Shape[0] = validators.Dim{Symbol: "seq"} }), `input "x" has seq from 2 to 32 in dimension 0, had batch from 1 to 16`},
		"fewer sizes": {func(i *validators.Interface) { i.Dims["batch"] = validators.DimRange{Min: 1, Opt: 4, Max: 8} },
			`input "x" has batch from 1 to 8 in dimension 0, had batch from 1 to 16`},
		"no small sizes": {func(i *validators.Interface) { i.Dims["batch"] = validators.DimRange{Min: 2, Opt: 4, Max: 16} }, "had batch from 1 to 16"},
		"a fixed size":   {input(0, func(x *validators.TensorInfo) { x.Shape[1] = validators.Dim{Size: 8} }), `input "x" has 8 in dimension 1, had seq from 2 to 32`},
		"another fixed":  {input(0, func(x *validators.TensorInfo) { x.Shape[2] = validators.Dim{Size: 5} }), `input "x" has 5 in dimension 2, had 4`},
		"sizes tied": {func(i *validators.Interface) {
			i.Dims["n"] = validators.DimRange{Min: 1, Opt: 4, Max: 32}
			for _, s := range [][]validators.Dim{i.Inputs[0].Shape[:2], i.Inputs[1].Shape} {
				s[0], s[1] = validators.Dim{Symbol: "n"}, validators.Dim{Symbol: "n"}
			}
		}, "has n from 1 to 32 in dimension 1, had seq"},
		"an input gone":             {func(i *validators.Interface) { i.Inputs = i.Inputs[:1] }, `input "mask" is gone`},
		"an input more":             {func(i *validators.Interface) { i.Inputs = append(i.Inputs, validators.TensorInfo{Name: "z"}) }, `input "z" is new, and callers do not give it`},
		"another dtype":             {input(1, func(x *validators.TensorInfo) { x.DType = tensor.Int32 }), `input "mask" is int32, was int64`},
		"another rank":              {output(func(o *validators.TensorInfo) { o.Shape = o.Shape[:1] }), `output "y" has shape`},
		"another class":             {output(func(o *validators.TensorInfo) { o.Shape[1] = validators.Dim{Size: 3} }), `output "y" has 3 in dimension 1, had 2`},
		"classes swapped":           {output(func(o *validators.TensorInfo) { o.Names = []string{"yes", "no"} }), `output "y" has other names: 0 is "yes", was "no"`},
		"a class gone":              {output(func(o *validators.TensorInfo) { o.Names = []string{"no"} }), `1 is nothing, was "yes"`},
		"no names":                  {output(func(o *validators.TensorInfo) { o.Names = nil }), `0 is nothing, was "no"`},
		"features swapped":          {input(0, func(x *validators.TensorInfo) { x.Names = []string{"b", "a", "c", "d"} }), `input "x" has other names: 0 is "b", was "a"`},
		"another kind":              {output(func(o *validators.TensorInfo) { o.Kind = validators.KindProbability }), `output "y" is of kind probability, was scores`},
		"an output gone":            {func(i *validators.Interface) { i.Outputs[0].Name = "z" }, `output "y" is gone`},
		"a size where a symbol was": {output(func(o *validators.TensorInfo) { o.Shape[0] = validators.Dim{Size: 16} }), `output "y" has 16 in dimension 0, had batch from 1 to 16`},
		"the size of another input": {output(func(o *validators.TensorInfo) { o.Shape[0] = validators.Dim{Symbol: "seq"} }), `output "y" has seq from 2 to 32 in dimension 0, had batch`},
		"a size of its own": {func(i *validators.Interface) {
			i.Outputs[0].Shape[0] = validators.Dim{Symbol: "found"}
			i.Dims["found"] = validators.DimRange{Min: 0, Opt: 1, Max: 9}
		}, `output "y" has found from 0 to 9 in dimension 0, had batch`},
		"symbols renamed": {func(i *validators.Interface) {
			i.Dims["n"] = i.Dims["batch"]
			i.Inputs[0].Shape[0], i.Inputs[1].Shape[0], i.Outputs[0].Shape[0] = validators.Dim{Symbol: "n"}, validators.Dim{Symbol: "n"}, validators.Dim{Symbol: "n"}
		}, ""},
		"tied to a constant": {func(i *validators.Interface) {
			i.Inputs[0].Shape[2], i.Inputs[0].Shape[1], i.Inputs[1].Shape[1] = validators.Dim{Symbol: "seq"}, validators.Dim{Symbol: "seq"}, validators.Dim{Symbol: "seq"}
		}, `input "x" has seq from 2 to 32 in dimension 2, had 4`},
		"inputs in another order": {func(i *validators.Interface) { i.Inputs[0], i.Inputs[1] = i.Inputs[1], i.Inputs[0] }, `inputs are in another order: 0 is "mask", was "x"`},
		"an output before the others": {func(i *validators.Interface) {
			i.Outputs = append([]validators.TensorInfo{{Name: "z"}}, i.Outputs...)
		}, `outputs are in another order: 0 is "z", was "y"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := promised()
			c.edit(&now.Interface)
			found := validators.Compare(now, promised()).Interface
			if got := fmt.Sprint(found); c.want == "" && len(found) > 0 || !strings.Contains(got, c.want) {
				t.Errorf("differences %q, want %q", found, c.want)
			}
		})
	}
}

// Machines that had an engine must have one that they can load as they are. What one engine newly needs does
// not count where another needs nothing more.
func TestCompareEngines(t *testing.T) {
	t.Parallel()
	engine := func(level, runtime, least string, required bool) artifact.Engine {
		e := artifact.Engine{Precision: "int8", Variant: "int8", Target: artifact.Target{Name: "x86-" + level,
			OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64", Level: level},
			Runtimes: map[string]artifact.Constraint{runtime: {Min: least}}}}
		if required {
			e.Load = &artifact.LoadProfile{Required: true}
		}
		return e
	}
	plain := engine("v1", "onnxruntime", "1.20", false)
	for name, c := range map[string]struct {
		was  artifact.Engine
		now  []artifact.Engine
		want string
	}{
		"the same":         {plain, []artifact.Engine{plain}, ""},
		"a lower version":  {plain, []artifact.Engine{engine("v1", "onnxruntime", "1.19", false)}, ""},
		"a higher version": {plain, []artifact.Engine{engine("v1", "onnxruntime", "1.30", false)}, "the machines of x86-v1/int8 need onnxruntime >= 1.30, and needed >= 1.20"},
		"another runtime":  {plain, []artifact.Engine{engine("v1", "openvino", "2026", false)}, "the machines of x86-v1/int8 need openvino >= 2026, and needed none"},
		"no machine":       {plain, []artifact.Engine{engine("v3", "onnxruntime", "1.20", false)}, "no engine for the machines of x86-v1/int8"},
		"a profile": {plain, []artifact.Engine{engine("v1", "onnxruntime", "1.20", true)},
			"the machines of x86-v1/int8 have to load it with its profile (load.required), and had not"},
		"a profile as before":    {engine("v1", "onnxruntime", "1.20", true), []artifact.Engine{engine("v1", "onnxruntime", "1.20", true)}, ""},
		"a profile no more":      {engine("v1", "onnxruntime", "1.20", true), []artifact.Engine{plain}, ""},
		"one that needs nothing": {plain, []artifact.Engine{engine("v1", "onnxruntime", "1.30", true), plain}, ""},
		"the one that needs less": {plain, []artifact.Engine{engine("v1", "onnxruntime", "1.30", true), engine("v1", "onnxruntime", "1.30", false)},
			"the machines of x86-v1/int8 need onnxruntime >= 1.30, and needed >= 1.20"},
		"both": {plain, []artifact.Engine{engine("v1", "onnxruntime", "1.30", true)},
			"the machines of x86-v1/int8 have to load it with its profile (load.required), and had not, and need onnxruntime >= 1.30, and needed >= 1.20"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, was := promised(), promised()
			now.Engines, was.Engines = c.now, []artifact.Engine{c.was}
			if got := strings.Join(validators.Compare(now, was).Interface, "\n"); got != c.want {
				t.Errorf("differences %q, want %q", got, c.want)
			}
		})
	}
}
