package pipeline

import (
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format"
)

// The note of a step says what it left, and what that costs: by the worst output.
func TestCompressionNote(t *testing.T) {
	t.Parallel()
	for want, step := range map[string]CompressionStep{
		"": {Bytes: BeforeAfter{10, 5}},
		"25.0 % of 8 numbers are zero, 1 layer as before, SNR 12.5 dB": {
			Parameters: &BeforeAfter{8, 8}, Zeros: &BeforeAfter{0, 2}, Kept: []KeptLayer{{Node: "a"}},
			Outputs: map[string]registry.OutputFigures{"y": {SpreadSNRdB: 30}, "z": {SpreadSNRdB: 12.5}}},
		"6 of 8 numbers are left, 2 layers as before": {
			Parameters: &BeforeAfter{8, 6}, Zeros: &BeforeAfter{0, 0}, Kept: make([]KeptLayer, 2)},
		"top1 97.50 % (reference 99.00 %)": {
			Parameters: &BeforeAfter{0, 0}, Zeros: &BeforeAfter{0, 0}, Accuracy: &registry.Accuracy{Metric: "top1", Engine: 0.975, Reference: 0.99}},
		"rmse 1.235 (reference 1)": {Accuracy: &registry.Accuracy{Metric: "rmse", Engine: 1.23456, Reference: 1}},
	} {
		if got := step.note(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What a machine needs free for a build is counted by the sizes of numbers.
func TestSizeOf(t *testing.T) {
	t.Parallel()
	for precision, want := range map[string]float64{
		validators.PrecisionFP32: 1, validators.PrecisionFP16: 0.5, validators.PrecisionInt8: 0.25, validators.PrecisionInt4: 0.15,
		registry.CompressedPrecision(validators.PrecisionInt8): 0.25, "of its own": 1,
	} {
		if got := sizeOf(precision); got != want {
			t.Errorf("%s: got %v, want %v", precision, got, want)
		}
	}
}

// An index is in one case, without the batch of one that a report counts.
func TestInCase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ index, shape, want []int64 }{
		{[]int64{0, 3}, []int64{1, 5}, []int64{3}},
		{[]int64{3}, []int64{1, 5}, []int64{3}},
		{[]int64{1, 3}, []int64{2, 5}, []int64{1, 3}},
		{nil, nil, nil},
	} {
		if got := inCase(c.index, c.shape); !slices.Equal(got, c.want) {
			t.Errorf("%v in %v: got %v, want %v", c.index, c.shape, got, c.want)
		}
	}
}

// The worst case of a report is that of the limit that failed, or else the worst element of the output with the most noise.
func TestWorstCase(t *testing.T) {
	t.Parallel()
	seven := 7
	figures := func(number int, snr float64) registry.OutputFigures {
		return registry.OutputFigures{SNRdB: registry.Figure(snr), Worst: &registry.Worst{Case: number}}
	}
	for name, c := range map[string]struct {
		report registry.ParityReport
		number int
		ok     bool
	}{
		"nothing differs": {registry.ParityReport{Outputs: map[string]registry.OutputFigures{"y": {SNRdB: registry.Figure(math.Inf(1))}}}, 0, false},
		"the output with the most noise": {registry.ParityReport{Outputs: map[string]registry.OutputFigures{
			"a": figures(1, 40), "b": figures(2, 20), "c": figures(3, 30), "d": {SNRdB: -10}}}, 2, true},
		"of two alike, the first by name": {registry.ParityReport{Outputs: map[string]registry.OutputFigures{"b": figures(2, 20), "a": figures(1, 20)}}, 1, true},
		"the limit that failed": {registry.ParityReport{
			Checks:  []registry.Check{{Verdict: registry.VerdictFail}, {Verdict: registry.VerdictPass, Case: new(int)}, {Verdict: registry.VerdictFail, Case: &seven}},
			Outputs: map[string]registry.OutputFigures{"b": figures(2, 20)}}, 7, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if number, ok := WorstCase(c.report); number != c.number || ok != c.ok {
				t.Errorf("got %d, %t; want %d, %t", number, ok, c.number, c.ok)
			}
		})
	}
}

// Options come from a spec or from JSON.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value any
		want  []string
	}{{[]string{"a"}, []string{"a"}}, {[]any{"a", 1, "b"}, []string{"a", "b"}}, {"a", nil}, {nil, nil}} {
		if got := texts(c.value); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %q, want %q", c.value, got, c.want)
		}
	}
}

// A report lists the packages of a Python that mlpromote did not install, and of nothing else.
func TestHostPackages(t *testing.T) {
	t.Parallel()
	adopted := toolchain.Identity{Adopted: true, Lock: digest.FromString("packages"), Versions: map[string]string{"torch": "2.11"}}
	got := hostPackages(adopted)
	if got == nil || !reflect.DeepEqual(got.Packages, registry.NewDigestSet(adopted.Lock)) || !reflect.DeepEqual(got.Versions, adopted.Versions) {
		t.Errorf("got %+v, want the packages of %+v", got, adopted)
	}
	for name, change := range map[string]func(*toolchain.Identity){
		"of a lock file": func(i *toolchain.Identity) { i.Adopted = false },
		"of an image":    func(i *toolchain.Identity) { i.Image = "sha256:0" },
		"of a manifest":  func(i *toolchain.Identity) { i.Versions = nil },
	} {
		other := adopted
		change(&other)
		if got := hostPackages(other); got != nil {
			t.Errorf("%s: got %+v, want none", name, got)
		}
	}
}

// A compiler that needs the device is run only on a machine that has it; the others cross-compile.
func TestDevices(t *testing.T) {
	t.Parallel()
	here := maker{worker: worker{}}
	here.node.Accelerators = []registry.NodeAccelerator{{Vendor: "nvidia", Arch: "sm_90"}, {Vendor: "amd", Arch: "gfx942"}}
	on := func(a *registry.TargetAccelerator) plan.Engine {
		return plan.Engine{Target: registry.Target{Name: "gpu", Accelerator: a}}
	}
	needs := toolchain.Profile{Name: "torch-inductor", NeedsDevice: true}
	for name, c := range map[string]struct {
		engine  plan.Engine
		profile toolchain.Profile
		want    []string
		refused bool
	}{
		"of a processor":          {on(nil), needs, nil, false},
		"compiled without":        {on(&registry.TargetAccelerator{Vendor: "nvidia", Arch: "sm_80"}), toolchain.Profile{}, nil, false},
		"here":                    {on(&registry.TargetAccelerator{Vendor: "nvidia", Arch: "sm_90"}), needs, []string{"nvidia"}, false},
		"of another age":          {on(&registry.TargetAccelerator{Vendor: "nvidia", Arch: "sm_80"}), needs, nil, true},
		"of another manufacturer": {on(&registry.TargetAccelerator{Vendor: "amd", Arch: "sm_90"}), needs, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := here.devices(c.engine, c.profile)
			if !slices.Equal(got, c.want) || registry.HasCode(err, registry.CodeWrongNode) != c.refused || (err != nil) != c.refused {
				t.Errorf("got %q, %v; want %q, refused %t", got, err, c.want, c.refused)
			}
		})
	}
}

// Where a processor has bf16, a failed fp32 engine of a runtime that uses it by itself gets the option that keeps fp32.
func TestHintBF16(t *testing.T) {
	t.Parallel()
	failed := registry.Errorf(registry.CodeLimit, "too much noise")
	keeps := toolchain.Profile{Name: "openvino", KeepsFP32: [2]string{"PRECISION", "f32"}}
	for name, c := range map[string]struct {
		feature   string
		profile   toolchain.Profile
		precision string
		load      *registry.LoadProfile
		failure   error
		hinted    bool
	}{
		"fp32":                        {"avx512_bf16", keeps, "fp32", nil, failed, true},
		"fp32, by matrix products":    {"amx_bf16", keeps, "fp32", nil, failed, true},
		"with other options":          {"amx_bf16", keeps, "fp32", &registry.LoadProfile{Options: map[string]string{"THREADS": "1"}}, failed, true},
		"of a processor without bf16": {"avx512_vnni", keeps, "fp32", nil, failed, false},
		"of a runtime that keeps it":  {"avx512_bf16", toolchain.Profile{}, "fp32", nil, failed, false},
		"int8":                        {"avx512_bf16", keeps, "int8", nil, failed, false},
		"kept already":                {"avx512_bf16", keeps, "fp32", &registry.LoadProfile{Options: map[string]string{"PRECISION": "f32"}}, failed, false},
		"an engine that passes":       {"avx512_bf16", keeps, "fp32", nil, nil, false},
		"that failed otherwise":       {"avx512_bf16", keeps, "fp32", nil, registry.Errorf(registry.CodeInternal, "it crashed"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v verification
			v.candidates = []candidate{{engine: registry.Engine{Precision: c.precision, Load: c.load}}}
			v.candidates[0].tool.Profile = c.profile
			v.node.CPU.Features = []string{c.feature}
			failures := []error{c.failure}
			v.hintBF16(failures)
			hints := registry.Hints(failures[0])
			if hinted := slices.ContainsFunc(hints, func(hint string) bool { return strings.Contains(hint, "load: {options: {PRECISION: f32}") }); hinted != c.hinted {
				t.Errorf("hints %q, want one: %t", hints, c.hinted)
			}
		})
	}
}

// What an importer is told of a source, by its format.
func TestImportOptions(t *testing.T) {
	t.Parallel()
	network := func(kind, norm string) spec.Source {
		return spec.Source{Format: spec.FormatSafetensors, Architecture: &spec.Architecture{Kind: kind, Input: []int64{3, 8}, Heads: 2, Norm: norm}}
	}
	trusted := spec.Source{Format: spec.FormatSkops}
	trusted.Trust.Types = []string{"b.B", "a.A"}
	for name, c := range map[string]struct {
		source spec.Source
		want   map[string]any
	}{
		"onnx":                  {spec.Source{Format: spec.FormatONNX, Simplify: true}, map[string]any{"simplify": true}},
		"skops":                 {trusted, map[string]any{"trusted": []string{"a.A", "b.B"}}},
		"skops without trust":   {spec.Source{Format: spec.FormatSkops}, map[string]any{"trusted": []string{}}},
		"keras":                 {spec.Source{Format: spec.FormatKeras}, map[string]any{}},
		"a network":             {network("mlp", ""), map[string]any{"kind": "mlp", "input": []string{"3", "8"}}},
		"an encoder":            {network(spec.ArchitectureEncoder, ""), map[string]any{"kind": "encoder", "input": []string{"3", "8"}, "heads": 2, "norm": "after"}},
		"an encoder, norm said": {network(spec.ArchitectureEncoder, "before"), map[string]any{"kind": "encoder", "input": []string{"3", "8"}, "heads": 2, "norm": "before"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := importOptions(c.source, nil)
			delete(got, "layers")
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %#v, want %#v", got, c.want)
			}
		})
	}
}

// The words for a step that was not done say who did it.
func TestRemembered(t *testing.T) {
	t.Parallel()
	for want, origin := range map[string]toolchain.Origin{"cached": {}, "cached in staging": {Cache: "staging"}} {
		if got := remembered(origin); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Open dimensions get the sizes that the graph can run, and each reason is said once. What the interface says stays.
func TestProposedSizes(t *testing.T) {
	t.Parallel()
	input := func(name string, symbols ...string) validators.TensorInfo {
		info := validators.TensorInfo{Name: name, DType: "float32"}
		for _, symbol := range symbols {
			info.Shape = append(info.Shape, open(symbol))
		}
		return info
	}
	of := func(least, most int64, why string) format.Sizes {
		return format.Sizes{Min: least, Opt: least, Max: most, Why: why}
	}
	const convolved, embedded = "convolutions", "an embedding"
	for name, c := range map[string]struct {
		inputs []validators.TensorInfo
		known  map[string]validators.DimRange
		uses   map[string]format.Use
		want   map[string]validators.DimRange
		why    string
	}{
		"one reason for two dimensions": {[]validators.TensorInfo{input("image", "height", "width")}, nil,
			map[string]format.Use{"image": {Sizes: map[int]format.Sizes{0: of(8, 64, convolved), 1: of(16, 64, convolved)}}},
			map[string]validators.DimRange{"height": {Min: 8, Opt: 8, Max: 64}, "width": {Min: 16, Opt: 16, Max: 64}}, convolved},
		"two reasons": {[]validators.TensorInfo{input("image", "height"), input("text", "length")}, nil,
			map[string]format.Use{"image": {Sizes: map[int]format.Sizes{0: of(8, 64, convolved)}}, "text": {Sizes: map[int]format.Sizes{0: of(1, 512, embedded)}}},
			map[string]validators.DimRange{"height": {Min: 8, Opt: 8, Max: 64}, "length": {Min: 1, Opt: 1, Max: 512}}, convolved + "; " + embedded},
		"inputs that have no size in common": {[]validators.TensorInfo{input("a", "n"), input("b", "n")}, nil,
			map[string]format.Use{"a": {Sizes: map[int]format.Sizes{0: of(8, 16, convolved)}}, "b": {Sizes: map[int]format.Sizes{0: of(32, 64, embedded)}}},
			map[string]validators.DimRange{}, ""},
		"what is known": {[]validators.TensorInfo{input("a", "n")}, map[string]validators.DimRange{"n": {Min: 1, Opt: 2, Max: 3}},
			map[string]format.Use{"a": {Sizes: map[int]format.Sizes{0: of(8, 16, convolved)}}},
			map[string]validators.DimRange{"n": {Min: 1, Opt: 2, Max: 3}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, why := proposedSizes(validators.Interface{Inputs: c.inputs, Dims: c.known}, c.uses)
			if !maps.Equal(got.Dims, c.want) || why != c.why {
				t.Errorf("got %v because of %q, want %v because of %q", got.Dims, why, c.want, c.why)
			}
		})
	}
}

// Rows of a file that is not there, or not one of tensors, are an error and no empty file.
func TestWriteRowsOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := writeRows(filepath.Join(dir, "out"), []rowsOf{{path: filepath.Join(dir, "none"), end: 1, count: 1}})
	if err == nil {
		t.Error("no error, want one about the missing file")
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*")); len(found) > 0 {
		t.Errorf("it left %q", found)
	}
}
