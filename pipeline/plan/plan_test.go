package plan_test

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

func file(name string) toolchain.Input {
	return toolchain.Input{Name: name, Digest: digest.FromString(name)}
}

// asked is what a build asks for, and what it has.
type asked struct {
	in      plan.Inputs
	ort     plan.Tool // onnxruntime 1.22.3, with the CPU and CUDA
	other   plan.Tool // other 2.0
	request plan.Requested
}

// base asks for one engine of ONNX Runtime, whose options are none.
func base() asked {
	compile := func(artifact.Target, string) (map[string]any, error) { return map[string]any{}, nil }
	return asked{
		in: plan.Inputs{
			Name: "vision/digits", Version: "1.2.3", Model: []toolchain.Input{file("model.onnx"), file("weights.bin")},
			Interface: validators.Interface{Outputs: []validators.TensorInfo{{Name: "y", DType: "float32", Shape: []validators.Dim{}}}},
			Cases:     cases.Set{Record: artifact.CaseSet{Count: 600, Origin: artifact.OriginRecorded, Labels: "label"}, Files: []toolchain.Input{file("cases")}},
		},
		ort: plan.Tool{
			Identity: toolchain.Identity{Name: "onnxruntime", Version: "1.22.3"}, Code: []registry.Digest{digest.FromString("hub")},
			Profile: toolchain.Profile{Name: "onnxruntime", ONNXRuntime: true, Operators: true, CompilesWithProviders: true,
				Providers: artifact.ProvidersOf("CPUExecutionProvider"), CompileOptions: compile},
		},
		other: plan.Tool{
			Identity: toolchain.Identity{Name: "other", Version: "2.0"}, Code: []registry.Digest{digest.FromString("other")},
			Profile: toolchain.Profile{Name: "other", Forms: []toolchain.Form{{Name: "blob"}, {Name: "int8", Calibrated: true}}, Tuning: "ranges.json", CompileOptions: compile},
		},
		request: plan.Requested{Toolchain: "onnxruntime", Variant: "fp32", Precision: "fp32",
			Target: artifact.Target{Name: "linux", OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64"}}},
	}
}

func (a asked) plan() (plan.Plan, error) {
	in := a.in
	in.Engines = append(slices.Clone(in.Engines), a.request)
	return plan.New(in, map[string]plan.Tool{"onnxruntime": a.ort, "other": a.other})
}

func cuda(options map[string]string) []artifact.Provider {
	return []artifact.Provider{{Name: "CUDAExecutionProvider", Options: options}, {Name: "CPUExecutionProvider"}}
}

// What cannot be built is refused before anything is.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	accuracy := &validators.AccuracyLimit{Metric: validators.MetricTop1, Drop: &validators.AtMost{Max: 0.01}}
	for name, c := range map[string]struct {
		edit func(a *asked)
		says string // empty: it is planned
	}{
		"as it is":                       {func(*asked) {}, ""},
		"its very version":               {func(a *asked) { a.request.ToolVersion = "1.22.3" }, ""},
		"the first parts of its version": {func(a *asked) { a.request.ToolVersion = "1.22" }, ""},
		"another version":                {func(a *asked) { a.request.ToolVersion = "1.22.4" }, "asks for onnxruntime 1.22.4, and this program has 1.22.3"},
		"half a part of its version":     {func(a *asked) { a.request.ToolVersion = "1.2" }, "asks for onnxruntime 1.2, and"},
		"a model that it just reads":     {func(a *asked) { a.in.Needs = onnx.Need{Version: "1.22.3", Because: "operator set 22"} }, ""},
		"a model for a later one": {func(a *asked) { a.in.Needs = onnx.Need{Version: "1.23", Because: "operator set 23"} },
			"the model has operator set 23, which ONNX Runtime reads from 1.23 on"},
		"such a model elsewhere":           {func(a *asked) { a.in.Needs = onnx.Need{Version: "1.23"}; a.request.Toolchain = "other" }, ""},
		"a form that there is":             {func(a *asked) { a.request.Toolchain, a.request.Form = "other", "blob" }, ""},
		"a form that there is not":         {func(a *asked) { a.request.Form = "blob" }, `target linux: form "blob": onnxruntime has only one kind`},
		"a target that is not supported":   {func(a *asked) { a.ort.Profile.CompileOptions = refuse }, "not on this target"},
		"providers":                        {func(a *asked) { a.request.Providers = cuda(nil) }, ""},
		"providers of another toolchain":   {func(a *asked) { a.request.Toolchain, a.request.Providers = "other", cuda(nil) }, "other has no execution providers"},
		"a tuning record":                  {func(a *asked) { in := file("mine.json"); a.request.Toolchain, a.request.Tuning = "other", &in }, ""},
		"a tuning record that is not read": {func(a *asked) { in := file("mine.json"); a.request.Tuning = &in }, "onnxruntime takes no tuning from a file"},
		"operators":                        {func(a *asked) { a.in.Operators = []toolchain.Input{file("ops.so")} }, ""},
		"operators elsewhere": {func(a *asked) { a.in.Operators = []toolchain.Input{file("ops.so")}; a.request.Toolchain = "other" },
			"operators of its own is built by onnxruntime alone"},
		"operators, quantized": {func(a *asked) {
			a.in.Operators, a.request.Quantize, a.request.Quantizer = []toolchain.Input{file("ops.so")}, map[string]any{"method": "fp16"}, "onnxruntime"
		}, "and neither quantized nor compressed"},
		"a compiler that quantizes": {func(a *asked) {
			a.request.Toolchain, a.request.Form, a.request.Quantizer = "other", "int8", "onnxruntime"
			a.request.Quantize = map[string]any{"method": "static-int8", "observer": "minmax", "per_channel": false}
		}, ""},
		"a compiler that quantizes, and what it does not know": {func(a *asked) {
			a.request.Toolchain, a.request.Form, a.request.Quantizer = "other", "int8", "onnxruntime"
			a.request.Quantize = map[string]any{"method": "static-int8", "exclude_nodes": []string{"conv"}}
		}, "form int8 of other quantizes by itself"},
		"a compiler that quantizes, by another observer": {func(a *asked) {
			a.request.Toolchain, a.request.Form, a.request.Quantizer = "other", "int8", "onnxruntime"
			a.request.Quantize = map[string]any{"method": "static-int8", "observer": "entropy"}
		}, "form int8 of other quantizes by itself"},
		"a compiler that quantizes, beside another tool": {func(a *asked) {
			a.request.Toolchain, a.request.Form, a.request.Quantizer = "other", "int8", "other"
			a.request.Quantize = map[string]any{"method": "static-int8"}
		}, "form int8 of other quantizes by itself"},
		"a compiler that quantizes, and nothing to quantize": {func(a *asked) { a.request.Toolchain, a.request.Form = "other", "int8" },
			"form int8 of other quantizes by itself"},
		"a source that is taken": {func(a *asked) {
			a.request.Toolchain, a.other.Profile.Sources, a.in.Import = "other", []string{"torch-export"}, &plan.Import{Format: "torch-export", Files: []plan.File{{}}}
		}, ""},
		"a source that is not taken": {func(a *asked) {
			a.request.Toolchain, a.other.Profile.Sources, a.in.Import = "other", []string{"torch-export", "huggingface"}, &plan.Import{Format: "jax", Files: []plan.File{{}}}
		}, "target linux: other compiles sources of the formats torch-export and huggingface, and this one is jax"},
		"ONNX for a compiler of sources": {func(a *asked) { a.request.Toolchain, a.other.Profile.Sources = "other", []string{"torch-export"} }, "and this one is onnx"},
		"a source, quantized": {func(a *asked) {
			a.request.Toolchain, a.other.Profile.Sources, a.in.Import = "other", []string{"torch-export"}, &plan.Import{Format: "torch-export", Files: []plan.File{{}}}
			a.request.Quantize, a.request.Quantizer = map[string]any{"method": "fp16"}, "onnxruntime"
		}, "what quantizes or compresses a model writes ONNX, as students are, and other compiles the source as it is"},
		"a source, compressed": {func(a *asked) {
			a.request.Toolchain, a.other.Profile.Sources, a.in.Import = "other", []string{"torch-export"}, &plan.Import{Format: "torch-export", Files: []plan.File{{}}}
			a.request.Compress, a.request.Compressor = []map[string]any{{"method": "prune"}}, "onnxruntime"
		}, "and other compiles the source as it is"},
		"a source that its compiler quantizes": {func(a *asked) {
			a.request.Toolchain, a.other.Profile.Sources, a.in.Import = "other", []string{"huggingface"}, &plan.Import{Format: "huggingface", Files: []plan.File{{}}}
			a.other.Profile.Quantizes, a.request.QuantizedInside = []string{"huggingface"}, "dynamic-int8"
		}, ""},
		"a source that its compiler does not quantize": {func(a *asked) {
			a.request.Toolchain, a.other.Profile.Sources, a.in.Import = "other", []string{"huggingface", "torch-export"}, &plan.Import{Format: "torch-export", Files: []plan.File{{}}}
			a.other.Profile.Quantizes, a.request.QuantizedInside = []string{"huggingface"}, "dynamic-int8"
		}, "other does not do that with a source in the format torch-export"},
		"a compiler of ONNX that is to quantize inside": {func(a *asked) { a.request.QuantizedInside = "weights-int8" }, "onnxruntime does not do that with a source in the format onnx"},
		"a quantizer that is not open":                  {func(a *asked) { a.request.Quantize, a.request.Quantizer = map[string]any{"method": "fp16"}, "nncf" }, "asks for nncf, which is not open"},
		"a toolchain that is not open":                  {func(a *asked) { a.request.Toolchain = "openvino" }, "asks for openvino, which is not open"},
		"an unknown preset":                             {func(a *asked) { a.in.Preset = "lax" }, `limits preset "lax"`},
		"labels for accuracy":                           {func(a *asked) { a.in.Limits.Accuracy = accuracy }, ""},
		"accuracy without labels":                       {func(a *asked) { a.in.Limits.Accuracy, a.in.Cases.Record.Labels = accuracy, "" }, "limits.accuracy asks for labels"},
		"neither":                                       {func(a *asked) { a.in.Cases.Record.Labels = "" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := base()
			c.edit(&a)
			p, err := a.plan()
			switch {
			case c.says == "" && (err != nil || len(p.Engines) != 1):
				t.Errorf("%d engines, error %v; want one", len(p.Engines), err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("error %v, want one that says %q", err, c.says)
			case c.says != "" && (p.Digest != "" || p.Engines != nil):
				t.Errorf("a plan of %d engines comes with an error", len(p.Engines))
			}
		})
	}
}

func refuse(artifact.Target, string) (map[string]any, error) {
	return nil, registry.Errorf(registry.CodeInvalid, "not on this target")
}

// What the spec leaves open is written out.
func TestEngineDefaults(t *testing.T) {
	t.Parallel()
	options := map[string]map[string]string{"CUDAExecutionProvider": {"device_id": "1"}}
	for name, c := range map[string]struct {
		edit func(a *asked)
		want func(e *plan.Engine)
	}{
		"nothing asked":     {func(*asked) {}, func(*plan.Engine) {}},
		"the exact runtime": {func(a *asked) { a.ort.Profile.ExactRuntime = true }, func(e *plan.Engine) { e.Target.Runtimes["onnxruntime"] = artifact.Constraint{Exact: "1.22.3"} }},
		"runtimes of the target": {func(a *asked) { a.request.Target.Runtimes = map[string]artifact.Constraint{"triton": {Min: "2"}} },
			func(e *plan.Engine) { e.Target.Runtimes = map[string]artifact.Constraint{"triton": {Min: "2"}} }},
		"the driver of an accelerator": {func(a *asked) {
			a.request.Target.Accelerator = &artifact.TargetAccelerator{Vendor: "nvidia", Arch: "sm_80"}
			a.ort.Profile.Driver = func(t artifact.Target) string { return "510 for " + t.Accelerator.Arch }
		}, func(e *plan.Engine) {
			e.Target.Accelerator = &artifact.TargetAccelerator{Vendor: "nvidia", Arch: "sm_80", Driver: &artifact.Constraint{Min: "510 for sm_80"}}
		}},
		"the driver of a target": {func(a *asked) {
			a.request.Target.Accelerator = &artifact.TargetAccelerator{Vendor: "nvidia", Driver: &artifact.Constraint{Min: "600"}}
			a.ort.Profile.Driver = func(artifact.Target) string { return "510" }
		}, func(e *plan.Engine) {
			e.Target.Accelerator = &artifact.TargetAccelerator{Vendor: "nvidia", Driver: &artifact.Constraint{Min: "600"}}
		}},
		"a driver that is not known": {func(a *asked) {
			a.request.Target.Accelerator = &artifact.TargetAccelerator{Vendor: "nvidia"}
			a.ort.Profile.Driver = func(artifact.Target) string { return "" }
		}, func(e *plan.Engine) { e.Target.Accelerator = &artifact.TargetAccelerator{Vendor: "nvidia"} }},
		"providers without options": {func(a *asked) { a.request.Providers = cuda(nil) }, func(e *plan.Engine) { e.Providers = cuda(nil) }},
		"providers with options": {func(a *asked) { a.request.Providers = cuda(options["CUDAExecutionProvider"]) }, func(e *plan.Engine) {
			e.Providers, e.Compile["provider_options"] = cuda(options["CUDAExecutionProvider"]), options
		}},
		"options that compile nothing": {func(a *asked) {
			a.request.Providers, a.ort.Profile.CompilesWithProviders = cuda(options["CUDAExecutionProvider"]), false
		}, func(e *plan.Engine) { e.Providers = cuda(options["CUDAExecutionProvider"]) }},
		"a form": {func(a *asked) { a.ort.Profile.Forms, a.request.Form = []toolchain.Form{{Name: "blob"}}, "blob" }, func(e *plan.Engine) {
			e.Form, e.Compile["form"] = "blob", "blob"
		}},
		"sizes": {func(a *asked) {
			a.ort.Profile.Sizes, a.in.Interface.Dims = true, map[string]validators.DimRange{"batch": {Min: 1, Opt: 4, Max: 8}}
		}, func(e *plan.Engine) {
			e.Compile["sizes"] = map[string]any{"batch": []any{int64(1), int64(4), int64(8)}}
		}},
		"sizes of no dimension": {func(a *asked) { a.ort.Profile.Sizes = true }, func(*plan.Engine) {}},
		"a compiler that quantizes": {func(a *asked) {
			a.ort.Profile.Calibrated, a.request.Quantize, a.request.Quantizer = true, map[string]any{"method": "static-int8"}, "onnxruntime"
		}, func(e *plan.Engine) { e.Calibrated = true }},
		"a tuning record": {func(a *asked) { in := file("mine.json"); a.ort.Profile.Tuning, a.request.Tuning = "tuning.json", &in }, func(e *plan.Engine) {
			named := file("mine.json")
			named.Name = "tuning.json"
			e.Tuning = &plan.Tuning{File: plan.File{Name: "tuning.json", Digest: digest.FromString("mine.json")}, Input: named}
		}},
		"a quantizer": {func(a *asked) {
			a.request.Quantize, a.request.Quantizer = map[string]any{"method": "fp16"}, "other"
		}, func(e *plan.Engine) {
			e.Quantize, e.Quantizer = map[string]any{"method": "fp16"}, &artifact.Toolchain{Name: "other", Version: "2.0"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := base()
			c.edit(&a)
			p, err := a.plan()
			if err != nil {
				t.Fatal(err)
			}
			want := plan.Engine{Target: base().request.Target, Variant: "fp32", Precision: "fp32", Compile: map[string]any{},
				Toolchain: artifact.Toolchain{Name: "onnxruntime", Version: "1.22.3"}, Providers: artifact.ProvidersOf("CPUExecutionProvider")}
			want.Target.Runtimes = map[string]artifact.Constraint{"onnxruntime": {Min: "1.22.3"}}
			c.want(&want)
			if want.Toolchain.Options, err = registry.CanonicalDigest(map[string]any{"quantize": want.Quantize, "compile": want.Compile}); err != nil {
				t.Fatal(err)
			}
			ignored := gocmp.FilterPath(func(p gocmp.Path) bool { return strings.HasSuffix(p.GoString(), ".file") }, gocmp.Ignore())
			if diff := gocmp.Diff(want.Compile, p.Engines[0].Compile); diff != "" {
				t.Errorf("compile options, wanted with -:\n%s", diff)
			}
			if diff := gocmp.Diff(want.Tuning, p.Engines[0].Tuning, ignored); diff != "" {
				t.Errorf("tuning, wanted with -:\n%s", diff)
			}
			want.Compile, want.Tuning, p.Engines[0].Tuning = p.Engines[0].Compile, nil, nil
			if diff := gocmp.Diff(want, p.Engines[0], gocmp.Transformer("target", func(t artifact.Target) []any {
				return []any{t.Name, t.OS, t.CPU, t.Accelerator, t.Runtimes}
			})); diff != "" {
				t.Errorf("engine, wanted with -:\n%s", diff)
			}
			if !a.request.Asked(p.Engines[0]) {
				t.Error("the engine is not the one that was asked for")
			}
		})
	}
}

// specOf is what a spec asks for that lists targets in this order, each with these variants.
func specOf(a asked, variants ...string) []plan.Requested {
	var listed []plan.Requested
	for _, target := range []struct{ name, level, toolchain string }{{"b", "v1", "onnxruntime"}, {"c", "v4", "other"}, {"a", "v3", "onnxruntime"}} {
		for _, variant := range variants {
			r := a.request
			r.Target.Name, r.Target.CPU.Level, r.Toolchain, r.Precision, r.Variant = target.name, target.level, target.toolchain, variant, variant
			listed = append(listed, r)
		}
	}
	return listed
}

// A plan has its engines in the order in which nodes get them, which is part of its digest. What several machines plan together
// has the same order, also where a machine makes none of the engines that the spec names first.
func TestOrderOfEngines(t *testing.T) {
	t.Parallel()
	a := base()
	tools := map[string]plan.Tool{"onnxruntime": a.ort, "other": a.other}
	planned := func(engines, others []plan.Requested) plan.Plan {
		t.Helper()
		in := a.in
		in.Engines, in.Others = engines, others
		p, err := plan.New(in, tools)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	labels := func(p plan.Plan) (all []string) {
		for _, e := range p.Engines {
			all = append(all, e.Label())
		}
		return all
	}
	engines := plan.InOrder(specOf(a, "int8", "fp32"))
	whole := planned(engines, nil)
	if diff := gocmp.Diff([]string{"a/int8", "a/fp32", "b/int8", "b/fp32", "c/int8", "c/fp32"}, labels(whole)); diff != "" {
		t.Errorf("order, wanted with -:\n%s", diff)
	}
	other := plan.InOrder(specOf(a, "fp32", "int8"))
	if p := planned(other, nil); p.Digest == whole.Digest {
		t.Error("another order of variants has the same plan")
	}
	key := func(engines []plan.Requested) (plan.Plan, registry.Digest) {
		t.Helper()
		in := a.in
		in.Engines = engines
		p, key, err := plan.Common(in, engines)
		if err != nil {
			t.Fatal(err)
		}
		return p, key
	}
	common, wholeKey := key(engines)
	if _, otherKey := key(other); otherKey == wholeKey {
		t.Error("parts of specs with another order of variants go together")
	}
	for _, split := range [][][2]int{{{4, 6}, {0, 4}}, {{0, 2}, {4, 6}, {2, 4}}, {{1, 2}, {0, 1}, {2, 6}}} {
		var parts []plan.Part
		for _, s := range split {
			others := slices.Concat(engines[:s[0]], engines[s[1]:])
			parts = append(parts, planned(engines[s[0]:s[1]], others).PartOf(wholeKey, tools))
		}
		joined, err := common.Join(engines, parts...)
		if err != nil || joined.Digest != whole.Digest {
			t.Errorf("parts %v: got %v, error %v; want %v", split, labels(joined), err, labels(whole))
		}
	}
}

// The source is the file that the spec names, also where it is imported first.
func TestSourceOfAnImport(t *testing.T) {
	t.Parallel()
	a := base()
	p, err := a.plan()
	if err != nil || p.Source != digest.FromString("model.onnx") || p.Import != nil || p.ReferencePrecision != "fp32" || p.Calibration != nil {
		t.Errorf("source %s, import %v, reference precision %s, calibration %v, error %v; want the model in fp32",
			p.Source, p.Import, p.ReferencePrecision, p.Calibration, err)
	}
	tool := toolchain.Identity{Name: "skl2onnx", Version: "1.19", Code: digest.FromString("driver")}
	if a.in.Import, err = plan.NewImport("skops", tool, map[string]any{"opset": 17}, []toolchain.Input{file("model.skops"), file("more")}); err != nil {
		t.Fatal(err)
	}
	a.in.Precision, a.in.Calibration = "bf16", cases.Set{Record: artifact.CaseSet{Count: 3}, Files: []toolchain.Input{file("calibration")}}
	p, err = a.plan()
	if err != nil || p.Source != digest.FromString("model.skops") || p.ReferencePrecision != "bf16" || p.Calibration == nil || p.Calibration.Count != 3 {
		t.Errorf("source %s, reference precision %s, calibration %v, error %v; want model.skops in bf16 with 3 cases of calibration",
			p.Source, p.ReferencePrecision, p.Calibration, err)
	}
	if i, err := plan.NewImport("skops", tool, map[string]any{"opset": func() {}}, nil); err == nil {
		t.Errorf("options that no digest can be made of gave %+v, want an error", i)
	}
}

// A quantizer reads the model, what it computes ranges from, and what it measures accuracy on.
func TestForQuantizer(t *testing.T) {
	t.Parallel()
	in := base().in
	in.Calibration.Files = []toolchain.Input{file("calibration")}
	for name, c := range map[string]struct {
		options map[string]any
		want    string
	}{
		"static":         {map[string]any{"method": plan.MethodStatic}, "model.onnx weights.bin calibration"},
		"dynamic":        {map[string]any{"method": plan.MethodDynamic}, "model.onnx weights.bin"},
		"weights":        {map[string]any{"method": plan.MethodWeights, "accuracy_aware": false}, "model.onnx weights.bin"},
		"tolerant":       {map[string]any{"method": plan.MethodFP16, "atol": 0.1}, "model.onnx weights.bin calibration"},
		"accuracy aware": {map[string]any{"method": plan.MethodStatic, "accuracy_aware": true}, "model.onnx weights.bin calibration cases"},
	} {
		var names []string
		for _, f := range in.ForQuantizer(c.options) {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: reads %s, want %s", name, got, c.want)
		}
	}
}

// A table of ranges is named by what decides about activations: not by how weights are quantized, and not by the processor.
func TestRangesName(t *testing.T) {
	t.Parallel()
	static := func(options map[string]any) plan.Engine {
		options["method"] = plan.MethodStatic
		return plan.Engine{Quantizer: &artifact.Toolchain{Name: plan.ONNXRuntime, Version: "1.22.3"}, Quantize: options}
	}
	p := plan.Plan{Calibration: &plan.Set{Files: []plan.File{{Name: "calibration", Digest: digest.FromString("calibration")}}}}
	model := []toolchain.Input{file("model.onnx")}
	name := func(p plan.Plan, e plan.Engine, model []toolchain.Input) string {
		t.Helper()
		got, err := p.RangesName(e, model)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	plain := name(p, static(map[string]any{"observer": "minmax"}), model)
	if !strings.HasPrefix(plain, "onnxruntime/ranges-") || !strings.HasSuffix(plain, ".json") || len(plain) != len("onnxruntime/ranges-.json")+12 {
		t.Errorf("name %s, want onnxruntime/ranges- with twelve digits", plain)
	}
	if got := name(p, static(map[string]any{"observer": "minmax", "reduce_range": true, "per_channel": true}), model); got != plain {
		t.Errorf("other weights: name %s, want %s", got, plain)
	}
	another := static(map[string]any{"observer": "minmax"})
	another.Quantizer.Version = "1.23.0"
	other := plan.Plan{Calibration: &plan.Set{Files: []plan.File{{Name: "calibration", Digest: digest.FromString("more")}}}}
	for what, got := range map[string]string{
		"another observer":    name(p, static(map[string]any{"observer": "entropy"}), model),
		"another model":       name(p, static(map[string]any{"observer": "minmax"}), []toolchain.Input{file("later.onnx")}),
		"another quantizer":   name(p, another, model),
		"another calibration": name(other, static(map[string]any{"observer": "minmax"}), model),
	} {
		if got == plain || got == "" {
			t.Errorf("%s: name %q, want one of its own", what, got)
		}
	}
	foreign, dynamic := static(map[string]any{}), static(map[string]any{})
	foreign.Quantizer.Name, dynamic.Quantize["method"] = "nncf", plan.MethodDynamic
	for what, got := range map[string]string{
		"no quantizer":          name(p, plan.Engine{}, model),
		"a quantizer elsewhere": name(p, foreign, model),
		"another method":        name(p, dynamic, model),
		"no calibration":        name(plan.Plan{}, static(map[string]any{}), model),
	} {
		if got != "" {
			t.Errorf("%s: name %q, want none", what, got)
		}
	}
	if got, err := p.RangesName(static(map[string]any{"observer": func() {}}), model); err == nil || got != "" {
		t.Errorf("options that no digest can be made of: name %q, error %v; want an error", got, err)
	}
}

// x86 without VNNI adds products of 8 bits in 16, which overflow. Nothing else does.
func TestSaturates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		target artifact.Target
		want   bool
	}{
		"x86":                     {artifact.Target{CPU: artifact.TargetCPU{Arch: "amd64"}}, true},
		"x86 with other features": {artifact.Target{CPU: artifact.TargetCPU{Arch: "amd64", Features: []string{"avx512_bf16"}}}, true},
		"x86 with AVX-512 VNNI":   {artifact.Target{CPU: artifact.TargetCPU{Arch: "amd64", Features: []string{"avx512_vnni"}}}, false},
		"x86 with AVX VNNI":       {artifact.Target{CPU: artifact.TargetCPU{Arch: "amd64", Features: []string{"avx_vnni"}}}, false},
		"x86 with both":           {artifact.Target{CPU: artifact.TargetCPU{Arch: "amd64", Features: []string{"avx_vnni", "avx512_vnni"}}}, false},
		"arm":                     {artifact.Target{CPU: artifact.TargetCPU{Arch: "arm64"}}, false},
		"x86 with an accelerator": {artifact.Target{CPU: artifact.TargetCPU{Arch: "amd64"}, Accelerator: new(artifact.TargetAccelerator)}, false},
	} {
		if got := plan.Saturates(c.target); got != c.want {
			t.Errorf("%s: saturates %v, want %v", name, got, c.want)
		}
	}
}
