package spec_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/validators"
)

// folder makes a folder with a model, cases, calibration, an asset and the spec.
func folder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"cases", "calibration", "sub"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range map[string]string{"m.onnx": "x", "vocab.txt": "x", "sub/vocab.txt": "x", spec.File: text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t *testing.T, text string) (*spec.Spec, error) {
	t.Helper()
	return spec.Load(filepath.Join(folder(t, text), spec.File), spec.Options{})
}

const small = `model: vision/resnet50
version: 1.4.0
source: m.onnx
cases: cases/
calibration: calibration
targets: [linux/amd64/v3, linux/amd64, linux/arm64]
variants: [fp32, int8]
`

func TestLoadSmall(t *testing.T) {
	t.Parallel()
	got, err := load(t, small)
	if err != nil {
		t.Fatal(err)
	}
	target := func(name, arch, level string) spec.Target {
		return spec.Target{Name: name, OS: "linux", CPU: spec.CPU{Arch: arch, Level: level},
			Toolchain: spec.Toolchain{Name: "onnxruntime"}, Variants: []string{"fp32", "int8"}}
	}
	want := &spec.Spec{
		File: got.File, Model: "vision/resnet50", Version: "1.4.0",
		Source:      spec.Source{Path: spec.Path{Written: "m.onnx"}, Format: "onnx"},
		Cases:       spec.Cases{Path: spec.Path{Written: "cases/"}},
		Calibration: &spec.Folder{Path: spec.Path{Written: "calibration"}},
		Variants: []spec.Variant{{Name: "fp32", Precision: "fp32"},
			{Name: "int8", Precision: "int8", Quantize: &spec.Quantize{Method: "static", Observer: "minmax"}}},
		Targets: []spec.Target{target("linux-amd64-v3", "amd64", "v3"), target("linux-amd64-v1", "amd64", "v1"), target("linux-arm64", "arm64", "")},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(spec.Spec{}, "Files", "doc")); diff != "" {
		t.Error(diff)
	}
	if got.Cases.Origin() != artifact.OriginRecorded {
		t.Errorf("origin %q, want %q", got.Cases.Origin(), artifact.OriginRecorded)
	}
	document := got.Targets[0].Registry()
	if err := document.Validate(); err != nil || document.CPU.Level != "v3" || document.V != artifact.TargetVersion {
		t.Errorf("target document %+v: %v", document, err)
	}
}

const grown = `model: text/bert
version: 2.0.0-rc.1
source: {path: sub/../m.onnx, format: onnx}
shapes: {batch: [1, 8, 32], seq: 128}
cases: {path: cases/, labels: label}
calibration: {path: calibration/}
assets: [vocab.txt]
variants:
  - fp32
  - {name: int8-entropy, quantize: {method: static, observer: entropy, per_channel: true}}
targets:
  - {name: x86-v3, os: linux, cpu: {arch: amd64, level: v3, features: [avx512_vnni]}, toolchain: {name: onnxruntime, version: "1.30"}, required_node_types: [icelake, zen2]}
  - {name: arm, cpu: {arch: arm64}, toolchain: onnxruntime, variants: [fp32]}
limits:
  preset: default
  outputs: {logits: {cosine: {min: 0.999}, snr: {min: 30}, max_abs: {max: 1e-1}, rtol: 1e-3, atol: 0, top1: {min: 99 %}}}
  accuracy: {metric: top1, drop: {max: 0.5%}}
  latency: {p50: {max: 150us}, p99: {max: 20 ms}, regression: {max: 10%}}
  min_cases: 16
`

func TestLoadGrown(t *testing.T) {
	t.Parallel()
	s, err := load(t, grown)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"fp32", "int8"}, s.Precisions()); diff != "" {
		t.Error(diff)
	}
	if v, ok := s.Variant("int8-entropy"); !ok || !v.Quantize.PerChannel || v.Quantize.Observer != spec.ObserverEntropy {
		t.Errorf("variant %+v", v)
	}
	if diff := cmp.Diff(map[string]validators.DimRange{"batch": {Min: 1, Opt: 8, Max: 32}, "seq": {Min: 128, Opt: 128, Max: 128}},
		s.Shapes.Dims()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"fp32"}, s.Targets[1].Variants); diff != "" {
		t.Error(diff)
	}
	model := validators.Interface{
		V:       1,
		Inputs:  []validators.TensorInfo{{Name: "ids", DType: "int64", Shape: []validators.Dim{{Size: 1}}}},
		Outputs: []validators.TensorInfo{{Name: "logits", DType: "float32", Shape: []validators.Dim{{Size: 1}, {Size: 2}}}},
	}
	limits, err := s.ExpandLimits(model, 600)
	if err != nil {
		t.Fatal(err)
	}
	if limits.Accuracy.Drop.Max != 0.005 || limits.MinCases != 16 || limits.Latency.P99.MaxNs != 20*time.Millisecond ||
		limits.Latency.P50.MaxNs != 150*time.Microsecond || limits.Latency.Regression.Max != 0.1 {
		t.Errorf("limits %+v", limits)
	}
	for _, precision := range s.Precisions() {
		o, _ := limits.For(precision, "logits")
		if o.Cosine.Min != 0.999 || o.SNRdB.Min != 30 || o.MaxAbs.Max != 0.1 || *o.RTol != 1e-3 || *o.ATol != 0 || o.Top1.Min != 0.99 {
			t.Errorf("%s: limits of logits %+v", precision, o)
		}
	}
}

const masked = `model: text/tickets
version: 1.0.0
source: m.onnx
cases: {path: cases/, compare: {tokens: {where: attention_mask}}}
targets: [linux/amd64]
variants:
  - fp32
  - fp16
  - {name: half, quantize: {method: fp16}}
  - {name: int8d, quantize: {method: dynamic, per_channel: true}}
limits:
  outputs: {logits: {atol: 0.5}}
  precisions: {fp16: {outputs: {tokens: {atol: 0.25}}}}
`

// Methods without calibration need none, and what counts is fixed with the limits.
func TestLoadMasked(t *testing.T) {
	t.Parallel()
	s, err := load(t, masked)
	if err != nil {
		t.Fatal(err)
	}
	want := []spec.Variant{
		{Name: "fp32", Precision: "fp32"},
		{Name: "fp16", Precision: "fp16", Quantize: &spec.Quantize{Method: spec.MethodFP16}},
		{Name: "half", Precision: "fp16", Quantize: &spec.Quantize{Method: spec.MethodFP16}},
		{Name: "int8d", Precision: "int8", Quantize: &spec.Quantize{Method: spec.MethodDynamic, PerChannel: true}},
	}
	if diff := cmp.Diff(want, s.Variants); diff != "" {
		t.Error(diff)
	}
	batch, seq := validators.Dim{Symbol: "batch"}, validators.Dim{Symbol: "seq"}
	model := validators.Interface{
		V:      1,
		Inputs: []validators.TensorInfo{{Name: "attention_mask", DType: "int64", Shape: []validators.Dim{batch, seq}}},
		Outputs: []validators.TensorInfo{
			{Name: "logits", DType: "float32", Shape: []validators.Dim{batch, {Size: 4}}},
			{Name: "tokens", DType: "float32", Shape: []validators.Dim{batch, seq, {Size: 8}}},
		},
	}
	limits, err := s.ExpandLimits(model, 600)
	if err != nil {
		t.Fatal(err)
	}
	for _, precision := range s.Precisions() {
		logits, _ := limits.For(precision, "logits")
		tokens, _ := limits.For(precision, "tokens")
		if logits.Where != "" || tokens.Where != "attention_mask" || *logits.ATol != 0.5 ||
			(tokens.ATol != nil && *tokens.ATol == 0.25) != (precision == "fp16") {
			t.Errorf("%s: limits of logits %+v, of tokens %+v", precision, logits, tokens)
		}
	}
}

// change is the small spec with one line in place of another.
func change(from, to string) string { return strings.Replace(small, from, to, 1) }

func TestLoadProblems(t *testing.T) {
	t.Parallel()
	limits := func(s string) string { return small + "limits: " + s + "\n" }
	target := func(s string) string {
		return change("targets: [linux/amd64/v3, linux/amd64, linux/arm64]", "targets: ["+s+"]")
	}
	variants := func(s string) string { return change("variants: [fp32, int8]", "variants: ["+s+"]") }
	for _, c := range []struct{ text, want string }{
		{change("variants:", "varients:"),
			`7:1 unknown key "varients" (did you mean "variants"?): want model, version, source, shapes, cases, calibration, assets, variants, targets, inputs, outputs, limits, reference, objective, tune, budgets, cache`},
		{change("cases: cases/\n", ""), `1:1 key "cases" is missing`},
		{change("vision/resnet50", "Vision"), `1:8 model name "Vision": want lower-case letters and digits in components separated by '/', inner '.', '_' or '-', at most 255 characters`},
		{change("1.4.0", `"1.4"`), `2:10 version "1.4": want a semantic version without build metadata, for example 1.4.0 or 2.0.0-rc.1`},
		{change("1.4.0", "1.4"), `2:10 found "1.4": want text, so put it in quotes: "1.4"`},
		{change("m.onnx", "n.onnx"), `3:9 n.onnx: no such file or folder (paths start from the folder of the spec)`},
		{change("m.onnx", "{path: cases}"), `3:16 cases: want a file, found a folder`},
		{change("m.onnx", `""`), `3:9 the path is empty: want a path relative to the folder of the spec`},
		{change("m.onnx", "{path: m.onnx, format: pytorch}"), `3:32 source format "pytorch" is not available in this version: want onnx, skops, pickle, safetensors, tflite, savedmodel, xgboost, lightgbm, pmml, keras, jax, torch-export, torchscript, huggingface, gguf`},
		{change("m.onnx", "{path: m.onnx, format: onx}"), `3:32 unknown source format "onx" (did you mean "onnx"?): want onnx, skops, pickle, safetensors, tflite, savedmodel, xgboost, lightgbm, pmml, keras, jax, torch-export, torchscript, huggingface, gguf`},
		{change("cases/", "nowhere"), `4:8 nowhere: no such file or folder (paths start from the folder of the spec)`},
		{change("cases/", "{path: cases/, generate: 4}"), `4:8 cases has both path and generate: want recorded cases or generated ones`},
		{change("cases/", "{seed: 4}"), `4:8 cases are missing: want a folder, or {generate: N, seed: S} with N from 1 to 100000`},
		{change("cases/", "{generate: -1}"), `4:19 cases are missing: want a folder, or {generate: N, seed: S} with N from 1 to 100000`},
		{change("cases/", "{generate: 4, labels: l}"), `4:30 generated cases have no labels: remove the key, or record cases`},
		{change("cases/", "{path: cases/, compare: {logits: {}}}"), `4:41 key "where" is missing`},
		{change("cases/", "{path: cases/, compare: {logits: {were: mask}}}"), `4:42 unknown key "were" (did you mean "where"?): want where`},
		{change("calibration: calibration\n", ""), `6:18 variant "int8" needs calibration and there is none: add calibration: {path: FOLDER} with typical inputs`},
		{small + "assets: [vocab.txt, sub/vocab.txt]\n", `8:21 asset "sub/vocab.txt" has the file name of asset "vocab.txt": want names that differ, since an engine holds all in one folder`},
		{small + "shapes: {batch: [1, 8]}\n", `8:17 found 2 sizes: want [min, opt, max]`},
		{small + "shapes: {batch: [4, 2, 8]}\n", `8:17 sizes min 4, opt 2, max 8: want 0 <= min <= opt <= max, and max at least 1`},

		{variants(""), `7:11 variants is empty: want at least one, for example [fp32]`},
		{variants("fp32, fp32"), `7:18 variant "fp32" is here twice`},
		{variants("fp23"), `7:12 unknown variant "fp23" (did you mean "fp32"?): want fp32, fp16, int8, int4`},
		{variants("bf16"), `7:12 variant "bf16" is not available in this version: want fp32, fp16, int8, int4`},
		{variants("{name: int8, quantize: {method: statik}}"), `7:44 unknown quantization method "statik" (did you mean "static"?): want static, dynamic, weights, fp16, none`},
		{variants("{name: int4, quantize: {method: weights, algorithm: gptq}}"), `7:64 unknown algorithm "gptq": want rtn, hqq`},
		{variants("{name: w8, quantize: {method: weights, bits: 8}}"),
			`7:57 weights of 8 bits are made by tool nncf, with a scale for each channel: say tool: nncf and no block_size, or bits: 4`},
		{variants("{name: d, quantize: {method: dynamic, tool: nncf}}"), `7:56 tool means nothing to method dynamic, only to static and weights: remove it`},
		{variants("{name: a, quantize: {method: static, tool: torchao}}"), `7:55 tool means nothing to method static, only to dynamic and weights: remove it`},
		{variants("{name: a, quantize: {method: weights, tool: torchao}}"), `7:32 torchao makes weights of 8 bits: say bits: 8`},
		{variants("{name: a, quantize: {method: weights, tool: torchao, bits: 4}}"), `7:71 torchao makes weights of 8 bits: say bits: 8`},
		{variants("{name: a, quantize: {method: weights, tool: torchao, bits: 8, block_size: 32}}"), `7:86 block_size means nothing to torchao, only to tool onnxruntime and nncf: remove it`},
		{variants("{name: s, quantize: {method: static, preset: mixed}}"), `7:57 preset means nothing to onnxruntime, only to tool nncf: remove it`},
		{variants("{name: fp16, quantize: {method: none}}"), `7:19 variant "fp16" stays as its source is: name it after the source's precision, int8 or int4`},
		{variants("{name: int8d, quantize: {method: dynamic, observer: minmax}}"), `7:64 observer means nothing to method dynamic, only to static: remove it`},
		{variants("{name: half, quantize: {method: fp16, observer: minmax}}"), `7:60 observer means nothing to method fp16, only to static: remove it`},
		{variants("{name: half, quantize: {method: fp16, per_channel: true}}"), `7:63 per_channel means nothing to method fp16, only to static and dynamic: remove it`},
		{variants("{name: half, quantize: {method: fp16, reduce_range: true}}"), `7:64 reduce_range means nothing to method fp16, only to static and dynamic: remove it`},
		{variants("{name: fp16, quantize: {method: dynamic}}"), `7:19 variant "fp16" is quantized to int8: want a name that does not say otherwise`},
		{variants("{name: int8, quantize: {method: fp16}}"), `7:19 variant "int8" is quantized to fp16: want a name that does not say otherwise`},
		{variants("{name: int8, quantize: {method: static, observer: max}}"), `7:62 unknown observer "max": want minmax, entropy, percentile`},
		{variants("{name: q4, quantize: {method: weights, block_size: 7}}"), `7:63 block_size 7: want 16, 32, 64, 128 or 256`},
		{variants("{name: q4, quantize: {method: weights, tolerance: {atol: 1}}}"), `7:62 tolerance means nothing to method weights, only to fp16: remove it`},
		{variants("{name: half, quantize: {method: fp16, tolerance: {rtol: -1}}}"), `7:61 tolerance: want rtol or atol, and no less than 0`},
		{variants("{name: half, quantize: {method: fp16, tolerance: {atol: -1}}}"), `7:61 tolerance: want rtol or atol, and no less than 0`},
		{variants("{name: half, quantize: {method: fp16, tolerance: {}}}"), `7:61 tolerance: want rtol or atol, and no less than 0`},
		{variants("{name: int8, quantize: {method: static, percentile: 99.9%}}"), `7:64 percentile 0.999: want observer percentile, and more than 50% and at most 100%`},
		{variants("{name: int8, quantize: {method: static, format: qddq}}"), `7:60 unknown format "qddq" (did you mean "qdq"?): want qdq, qoperator`},
		{variants("{name: fp32, quantize: {method: static}}"), `7:19 variant "fp32" is quantized to int8: want a name that does not say otherwise`},
		{variants("{name: A.b, quantize: {method: static}}"), `7:19 variant name "A.b": want lower-case letters and digits with inner '_' or '-'`},
		{variants("{name: best}"), `7:19 unknown variant "best": want fp32, fp16, int8, int4`},

		{target(""), `6:10 targets is empty: want at least one, for example [linux/amd64/v1]`},
		{target("linux"), `6:11 target "linux": want os/arch or os/arch/level, for example linux/amd64/v3, or a mapping with a name`},
		{target("linux/amd65"), `6:11 unknown architecture "amd65" (did you mean "amd64"?): want amd64, arm64`},
		{target("linx/amd64"), `6:11 unknown os "linx" (did you mean "linux"?): want linux, darwin, windows`},
		{target("linux/amd64/v5"), `6:11 unknown level "v5" (did you mean "v1"?): want v1, v2, v3, v4`},
		{target("linux/arm64/v3"), `6:11 target linux-arm64-v3: level "v3" is of amd64 processors only: arm64 has none`},
		{target("linux/amd64, linux/amd64/v1"), `6:24 target "linux-amd64-v1" is here twice`},
		{target("{name: x, os: linux}"), `6:11 target x: cpu.arch is missing: want amd64 or arm64`},
		{target("{name: X, cpu: {arch: amd64}}"), `6:18 target name "X": want lower-case letters and digits with inner '.', '_' or '-', at most 48`},
		{target("{name: x, cpu: {arch: amd64, features: [AVX2]}}"), `6:51 feature "AVX2": want a name in lower case, such as avx512_vnni`},
		{target("{name: x, cpu: {arch: amd64}, gpu: {product: NVIDIA-L4}}"), `6:41 key "gpu" is now called "accelerator"`},
		{target("{name: x, cpu: {arch: amd64}, stretch: exact}"), `6:41 key "stretch" is now called "compatibility"`},
		{target("{name: x, cpu: {arch: amd64}, witnesses: [icelake]}"), `6:41 key "witnesses" is now called "required_node_types"`},
		{target("{name: x, cpu: {arch: amd64}, compatibility: exact}"), `6:18 target x: compatibility "exact" applies only to accelerators: remove it`},
		{target("{name: x, cpu: {arch: amd64}, toolchain: iree, accelerator: {vendor: nvidia, arch: sm_80, memory_mib: -1}}"),
			`6:18 target x: accelerator has 0 devices of -1 MiB: want both at least 0`},
		{target("{name: x, cpu: {arch: amd64}, accelerator: {product: NVIDIA-L4}}"), `6:54 target x: onnxruntime builds engines for CPUs: for an accelerator want toolchain iree or xla or torch-inductor or tensorrt-rtx`},
		{target("{name: x, cpu: {arch: amd64}, toolchain: tensorrt}"),
			`6:52 unknown toolchain "tensorrt": want onnxruntime, onnxruntime-openvino, openvino, iree, litert, onnxruntime-web, tvm, xla, torch-inductor, llama-cpp, tensorrt-rtx, coreml, or write a manifest for your own compiler and name its folder with --toolchains (docs/how-to/compilers.md)`},
		{target("{name: x, cpu: {arch: amd64}, toolchain: iree, accelerator: {vendor: nvidia, arch: sm_80, driver: '>= 550'}}"),
			`6:109 driver ">= 550": want the lowest version as numbers separated by dots, such as "550"`},
		{target("{name: x, cpu: {arch: amd64}, toolchain: iree, accelerator: {vendor: nvidia, arch: sm_80, product: NVIDIA L4}}"),
			`6:110 product "NVIDIA L4": want it as GPU feature discovery names it: NVIDIA-L4`},
		{target("{name: x, cpu: {arch: amd64}, toolchain: {name: onnxruntime, version: latest}}"), `6:81 toolchain version "latest": want numbers separated by dots`},
		{target("{name: x, cpu: {arch: amd64}, variants: [int4]}"), `6:52 unknown variant "int4" (did you mean "int8"?): want fp32, int8`},
		{target("{name: x, cpu: {arch: amd64}, variants: []}"), `6:51 target x: variants is empty: remove the key to build all`},
		{target("{name: x, cpu: {arch: amd64}, variants: [fp32, fp32]}"), `6:58 variant "fp32" is here twice`},

		{limits("{preset: lax}"), `8:18 unknown preset "lax": want strict, default, mlperf-99, mlperf-99.9`},
		{limits("{outputs: {logits: {}}}"), `8:28 no limit: want one of rtol, atol, cosine, snr, max_abs, max_error, case_error, quarter_error, systematic, top1, equal, detections, close`},
		{limits("{precisions: {fp16: {outputs: {logits: {atol: 0.1}}}}}"), `8:29 unknown precision of a variant "fp16" (did you mean "fp32"?): want fp32, int8`},
		{limits("{precisions: {int8: {outputs: {logits: {}}}}}"), `8:48 no limit: want one of rtol, atol, cosine, snr, max_abs, max_error, case_error, quarter_error, systematic, top1, equal, detections, close`},
		{limits("{precisions: {int8: {}}}"), `8:29 key "outputs" is missing`},
		{limits("{outputs: {logits: {where: mask, atol: 1}}}"), `8:29 unknown key "where": want rtol, atol, cosine, snr, max_abs, max_error, case_error, quarter_error, systematic, top1, equal, detections, close, per_channel`},
		{limits("{outputs: {logits: {cosine: {min: 2}}}}"), `8:28 cosine.min 2: want a number from -1 to 1`},
		{limits("{outputs: {logits: {cosine: {max: 1}}}}"), `8:37 key "min" is missing
8:38 unknown key "max": want min`},
		{limits("{accuracy: {metric: top1, drop: {max: 1%}}}"), `8:20 accuracy needs right answers: name the tensor that holds them in cases: {path: FOLDER, labels: NAME}`},
		{limits("{latency: {p99: {max: 20}}}"), `8:31 found "20": want a time of more than nothing with its unit, such as 20ms, 150us or 1.5s`},
		{limits("{latency: {regression: {max: ten}}}"), `8:38 found "ten": want a number, or one in percent such as 0.5%`},
		{limits("{latency: {regression: {max: -10%}}}"), `8:19 latency.regression.max -0.1: want a finite number of at least 0`},
		{limits("{confidence: 50%}"), `8:22 confidence 0.5: want more than 50% and less than 100%`},
		{limits("{confidence: 100%}"), `8:22 confidence 1: want more than 50% and less than 100%`},
		{small + "reference: {accept: ' '}\n", `8:21 found a text of 1 bytes: want the reason, in at most 1000`},
		{small + "reference: {accept: " + strings.Repeat("a", 1001) + "}\n", `8:21 found a text of 1001 bytes: want the reason, in at most 1000`},
		{limits("{min_cases: -1}"), `8:21 min_cases -1: want at least 1`},
	} {
		_, err := load(t, c.text)
		if diff := cmp.Diff(c.want, problems(t, err)); diff != "" {
			t.Errorf("%s%s", c.text, diff)
		}
	}
}

// A clash of names among variants is told once, as theirs; tune, which is not there, has none.
func TestClashOfVariants(t *testing.T) {
	t.Parallel()
	_, err := load(t, change("variants: [fp32, int8]", "variants: [{name: a, quantize: {method: fp16}}, {name: a, quantize: {method: dynamic}}]"))
	if diff := cmp.Diff(`7:56 variant "a" is here twice`, problems(t, err)); diff != "" {
		t.Error(diff)
	}
}

// Whatever takes a step has a budget, also what no target names.
func TestBudgetsOfAll(t *testing.T) {
	t.Parallel()
	s, err := load(t, small+"budgets: {nncf: {time: 2h}, tensorflow: {time: 1h}, scikit-learn: {cores: 2}}\n")
	if err != nil || len(s.Budgets) != 3 {
		t.Errorf("budgets %v, error %v", s, err)
	}
}

// What a step may take is counted from 0, which is the toolchain's own budget, to 4096.
func TestBoundsOfBudgets(t *testing.T) {
	t.Parallel()
	for budget, want := range map[string]string{
		"cores: 0":    "",
		"cores: 4096": "",
		"cores: 4097": "8:25 4097 cores: want 1 to 4096",
		"cores: -1":   "8:25 -1 cores: want 1 to 4096",
		"gpus: 0":     "",
		"gpus: 4096":  "",
		"gpus: 4097":  "8:24 4097 accelerators: want 1 to 4096",
		"gpus: -1":    "8:24 -1 accelerators: want 1 to 4096",
	} {
		t.Run(budget, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, small+"budgets: {nncf: {"+budget+"}}\n")
			if want == "" {
				if err != nil {
					t.Errorf("got %v, want it accepted", err)
				}
				return
			}
			if diff := cmp.Diff(want, problems(t, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAccuracyProblems(t *testing.T) {
	t.Parallel()
	text := change("cases/", "{path: cases/, labels: l}") + "limits: {accuracy: {metric: METRIC}}\n"
	for metric, want := range map[string]string{
		"top_5, drop: {max: 1%}":            `8:29 unknown accuracy metric "top_5" (did you mean "top5"?): want top1, top2, top3, top5, top10, exact, prefix, f1_macro, f1_binary, miou, auc, auc_macro, r2, mae, mape, rmse, map50, map, perplexity, program`,
		"top1, drop: {max: 101%}":           `8:20 accuracy.drop.max 1.01: want a number from 0 to 1`,
		"top1, relative: {min: 101%}":       `8:20 accuracy.relative.min 1.01: want a number from 0 to 1`,
		"top1, max: 0.5":                    `8:20 accuracy.max: of top1 more is better: want min`,
		"rmse, min: 0.5":                    `8:20 accuracy.min: of rmse less is better: want max`,
		"rmse, max: -1":                     `8:20 accuracy.max.max -1: want a finite number of at least 0`,
		"rmse, drop: {max: 150%}":           "",
		"r2, min: -1":                       "",
		"program, min: 1":                   `8:29 metric program needs the program: add program: score.py, a file in the folder of this spec`,
		"top1, min: 1%, program: m.onnx":    `8:53 top1 is computed without a program: want metric: program`,
		"top1, min: 1%, lower: true":        `8:51 lower is about metric program: leave it out`,
		"program, min: 1, program: none.py": `8:55 none.py: no such file or folder (paths start from the folder of the spec)`,
		"mae":                               `8:20 accuracy: want one of drop, min, max, relative, regression`,
	} {
		_, err := load(t, strings.Replace(text, "METRIC", metric, 1))
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", metric, err)
			}
			continue
		}
		if diff := cmp.Diff(want, problems(t, err)); diff != "" {
			t.Errorf("%s: %s", metric, diff)
		}
	}
}

// problems lists what an error holds, a line for each.
func problems(t *testing.T, err error) string {
	t.Helper()
	var all *strictyaml.Error
	if !errors.As(err, &all) || registry.CodeOf(err) != registry.CodeInvalid {
		t.Fatalf("error %v (%T): want CodeInvalid around *strictyaml.Error", err, err)
	}
	var lines []string
	for _, p := range all.Problems {
		lines = append(lines, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Message))
	}
	return strings.Join(lines, "\n")
}

func TestLoadWithoutFile(t *testing.T) {
	t.Parallel()
	_, err := spec.Load(filepath.Join(t.TempDir(), spec.File), spec.Options{})
	if registry.CodeOf(err) != registry.CodeInvalid || len(registry.Hints(err)) != 1 {
		t.Errorf("error %v, hints %v", err, registry.Hints(err))
	}
	if _, err := spec.Load(t.TempDir(), spec.Options{}); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("a folder: %v", err)
	}
}

func TestErrorNamesTheFileAndQuotesTheLine(t *testing.T) {
	t.Parallel()
	dir := folder(t, change("variants:", "varients:"))
	path := filepath.Join(dir, spec.File)
	_, err := spec.Load(path, spec.Options{})
	if err == nil || !strings.HasPrefix(err.Error(), path+`:7:1: unknown key "varients"`) ||
		!strings.HasSuffix(err.Error(), "\n    varients: [fp32, int8]") {
		t.Errorf("error %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(grown))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		path := filepath.Join(dir, spec.File)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := spec.Load(path, spec.Options{}); err != nil && registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("error %v: want CodeInvalid", err)
		}
	})
}
