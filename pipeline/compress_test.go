//go:build cgo

package pipeline_test

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// compressed is a spec whose second variant is compressed. VARIANT is what the variant says.
const compressed = `model: vision/digits
version: 1.0.0
source: model.onnx
cases: cases/
calibration: {path: calibration/}
variants: [fp32, {name: small, VARIANT}]
targets: [linux/amd64/v1]
limits: {precisions: {fp32-compressed: {outputs: {y: {snr: {min: 0}, max_error: {max: 9}, case_error: {max: 9}, systematic: {max: 9}}}}}}
`

// compressible makes a world whose model has a product of matrices, and calibration data.
func compressible(t *testing.T) *world {
	t.Helper()
	w := setup(t, 1.5)
	if err := os.WriteFile(filepath.Join(w.dir, "model.onnx"), scalingBy("MatMul", 1.5, 1, "made by hand", floats), 0o600); err != nil {
		t.Fatal(err)
	}
	w.calibration(t, []float32{2, 4})
	return w
}

// snr is that of an engine which computes got * x, where the model computes 1.5 * x.
func snr(got float64) float64 { return 20 * math.Log10(1.5/math.Abs(1.5-got)) }

// Each step gets the model that the last one left, and its cost is measured against the reference model on the calibration data.
func TestBuildCompresses(t *testing.T) {
	t.Parallel()
	w := compressible(t)
	weights := map[string]float32{"prune": 1.4, "low-rank": 1.45}
	var jobs []toolchain.Job
	var given []float32
	w.quantize = func(job toolchain.Job) (quantized, error) {
		data, err := os.ReadFile(job.Inputs[0].Path)
		if err != nil {
			return quantized{}, err
		}
		weight, err := weightOf(data)
		jobs, given = append(jobs, job), append(given, weight)
		method, _ := job.Options["method"].(string)
		return quantized{weight: weights[method], result: `{"parameters": {"before": 8, "after": 8}, "zeros": {"before": 0, "after": 2},
			"kept": [{"node": "a", "operator": "MatMul", "why": "it is small"}]}`}, err
	}
	const steps = `compress: [{method: prune, pattern: unstructured, amount: 25%, exclude: [b]}, {method: low-rank, energy: 90%, nodes: [a]}]`
	built := w.built(t, strings.Replace(compressed, "VARIANT", steps, 1), build.Options{})

	options := []map[string]any{
		{"method": "prune", "pattern": "unstructured", "amount": 0.25, "exclude": []string{"b"}},
		{"method": "low-rank", "energy": 0.9, "nodes": []string{"a"}},
	}
	if len(jobs) != 2 || jobs[0].Verb != toolchain.VerbCompress || !slices.Equal(given, []float32{1.5, 1.4}) {
		t.Fatalf("%d jobs on weights %v, want two of %s: the second on what the first left", len(jobs), given, toolchain.VerbCompress)
	}
	for i, want := range options {
		if got := jobs[i].Options; !reflect.DeepEqual(got, want) {
			t.Errorf("options of step %d: got %v, want %v", i, got, want)
		}
	}
	const label = "linux-amd64-v1/small"
	cost := built.Compression[label]
	if len(built.Compression) != 1 || cost == nil || cost.Calibration != 2 || cost.Labels != "" || len(cost.Steps) != 2 {
		t.Fatalf("compression %+v, want two steps of %s on two cases", built.Compression, label)
	}
	for i, want := range []struct {
		name  string
		noise float64
	}{{"prune unstructured", snr(1.4)}, {"low-rank", snr(1.45)}} {
		step := cost.Steps[i]
		if step.Step != want.name || !reflect.DeepEqual(step.Options, options[i]) {
			t.Errorf("step %d is %s with %v, want %s with %v", i, step.Step, step.Options, want.name, options[i])
		}
		if got := float64(step.Outputs["y"].SNRdB); math.Abs(got-want.noise) > 0.01 {
			t.Errorf("%s: SNR %.2f dB, want %.2f", want.name, got, want.noise)
		}
		if step.Bytes.Before <= 0 || step.Bytes.After <= 0 || i > 0 && step.Bytes.Before != cost.Steps[i-1].Bytes.After {
			t.Errorf("%s: bytes %+v, want those of the model before and after", want.name, step.Bytes)
		}
		if step.Parameters == nil || *step.Parameters != (build.BeforeAfter{Before: 8, After: 8}) || step.Zeros == nil || step.Zeros.After != 2 ||
			len(step.Kept) != 1 || step.Kept[0].Why != "it is small" {
			t.Errorf("%s: %+v, want what the driver counted", want.name, step)
		}
	}
	const said = "small for linux-amd64-v1"
	for _, step := range []string{"prune unstructured of " + said, "low-rank of " + said, "measure prune unstructured of " + said} {
		if !slices.Contains(w.done(progress.Done), step) {
			t.Errorf("no step %q in %q", step, w.done(progress.Done))
		}
	}
	if _, err := verify.Verify(t.Context(), w.p, built.Ref); err != nil {
		t.Errorf("verify, against the model before any compression: %v", err)
	}
	other := strings.Replace(compressed, "VARIANT", "compress: [{method: prune, pattern: '2:4'}]", 1)
	if got := w.built(t, other, build.Options{}); got.Unchanged {
		t.Error("a build with another step is unchanged")
	}
}

// A variant with a model of its own is compiled from that, and compared with the reference model.
func TestBuildOfAStudent(t *testing.T) {
	t.Parallel()
	w := compressible(t)
	if err := os.WriteFile(filepath.Join(w.dir, "student.onnx"), scaling(1.6, 1, "another model, which is smaller"), 0o600); err != nil {
		t.Fatal(err)
	}
	built := w.built(t, strings.Replace(compressed, "VARIANT", "model: student.onnx", 1), build.Options{})
	cost := built.Compression["linux-amd64-v1/small"]
	if cost == nil || len(cost.Steps) != 1 || cost.Steps[0].Step != "student" || cost.Calibration != 2 {
		t.Fatalf("compression %+v, want one step", built.Compression)
	}
	step := cost.Steps[0]
	if got, want := float64(step.Outputs["y"].SNRdB), snr(1.6); math.Abs(got-want) > 0.01 {
		t.Errorf("SNR %.2f dB, want %.2f", got, want)
	}
	model, student := len(scalingBy("MatMul", 1.5, 1, "made by hand", floats)), len(scaling(1.6, 1, "another model, which is smaller"))
	if want := (build.BeforeAfter{Before: int64(model), After: int64(student)}); step.Bytes != want {
		t.Errorf("bytes %+v, want %+v", step.Bytes, want)
	}
	if !slices.Contains(w.done(progress.Done), "measure small for linux-amd64-v1") {
		t.Errorf("steps %q, want that its cost is measured", w.done(progress.Done))
	}
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range verified.Engines {
		want := snr(1.6)
		if strings.HasSuffix(e.Label, "fp32") {
			want = math.Inf(1)
		}
		if got := float64(e.Parity.Outputs["y"].SNRdB); got != want && math.Abs(got-want) > 0.01 {
			t.Errorf("%s: SNR %.2f dB, want %.2f", e.Label, got, want)
		}
	}
}

// What cannot be compressed, and a student that is another model, are refused before anything is made.
func TestBuildRefusesToCompress(t *testing.T) {
	t.Parallel()
	const prune = "compress: [{method: prune, pattern: '2:4'}]"
	for name, c := range map[string]struct {
		variant string
		change  func(t *testing.T, w *world)
		code    registry.Code
		says    string
	}{
		"a model without products": {prune, func(t *testing.T, w *world) {
			t.Helper()
			write(t, w, "model.onnx", scaling(1.5, 1, "made by hand"))
		}, registry.CodeInvalid, "has no convolution and no matrix product"},
		"a tool that fails": {prune, func(_ *testing.T, w *world) {
			w.quantize = func(toolchain.Job) (quantized, error) {
				return quantized{}, registry.Errorf(registry.CodeInvalid, "node a cannot be pruned")
			}
		}, registry.CodeInvalid, "node a cannot be pruned"},
		"a tool that says nothing": {prune, func(_ *testing.T, w *world) {
			w.quantize = func(toolchain.Job) (quantized, error) { return quantized{weight: 1, result: "no JSON"}, nil }
		}, registry.CodeInternal, "result of compress"},
		"a student that is missing": {"model: none.onnx", nil, registry.CodeInvalid, "none.onnx"},
		"a student of another type": {"model: student.onnx", func(t *testing.T, w *world) {
			t.Helper()
			write(t, w, "student.onnx", scalingOf(1.5, 1, "", func(name string) []byte { return value(name, 11) }))
		}, registry.CodeInvalid, "has the same inputs and outputs"},
		"a student that runs code": {"model: student.onnx", func(t *testing.T, w *world) {
			t.Helper()
			write(t, w, "student.onnx", []byte("\x80\x04K\x01."))
		}, registry.CodeUnsafe, "student.onnx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := compressible(t)
			if c.change != nil {
				c.change(t, w)
			}
			path := filepath.Join(w.dir, "none.onnx")
			if strings.Contains(c.variant, "none.onnx") { // it is there when the spec is read
				write(t, w, "none.onnx", nil)
			}
			s := w.spec(t, strings.Replace(compressed, "VARIANT", c.variant, 1))
			if strings.Contains(c.variant, "none.onnx") {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			_, err := build.Build(t.Context(), w.p, s, build.Options{})
			if !registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %s that says %q", err, c.code, c.says)
			}
			if heads, err := w.Heads(t.Context(), "staging", ""); err != nil || len(heads) != 0 {
				t.Errorf("heads %v, error %v; want none", heads, err)
			}
		})
	}
}

// A student whose graph names other classes than the output has is refused: its answers would be read by the wrong names.
func TestStudentWithClasses(t *testing.T) {
	t.Parallel()
	classes := func(names ...string) []byte {
		attribute := str(nil, 1, "classlabels_strings")
		for _, name := range names {
			attribute = str(attribute, 9, name)
		}
		return num(attribute, 20, 8)
	}
	pairs := func(name string) []byte { // of shape [1, 2]
		shape := sub(sub(nil, 1, num(nil, 1, 1)), 1, num(nil, 1, 2))
		return sub(str(nil, 1, name), 2, sub(nil, 1, sub(num(nil, 1, 1), 2, shape)))
	}
	for name, c := range map[string]struct {
		student []byte // attribute
		output  string // line of the spec
		says    string // empty: it builds
	}{
		"the same":          {classes("cat", "dog"), "outputs: {y: {kind: scores, labels: [cat, dog]}}\n", ""},
		"another class":     {classes("dog", "cat"), "outputs: {y: {kind: scores, labels: [cat, dog]}}\n", `its classes are ["dog" "cat"], and those of output "y" are ["cat" "dog"]`},
		"no classes":        {nil, "outputs: {y: {kind: scores, labels: [cat, dog]}}\n", ""},
		"an output without": {classes("dog", "cat"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			write(t, w, "model.onnx", scalingWith(nil, "Mul", 1.5, 1, "made by hand", pairs))
			write(t, w, "student.onnx", scalingWith(c.student, "Mul", 1.6, 1, "another model", pairs))
			for folder, x := range map[string][]float32{"cases": {1, 2, 3, 4}, "calibration": {5, 6, 7, 8}} {
				if err := os.MkdirAll(filepath.Join(w.dir, folder), 0o700); err != nil {
					t.Fatal(err)
				}
				made, err := tensor.New(x, 2, 1, 2)
				if err != nil {
					t.Fatal(err)
				}
				writeTensors(t, filepath.Join(w.dir, folder, "cases-00000.safetensors"), map[string]tensor.Tensor{"x": made})
			}
			text := strings.Replace(compressed, "VARIANT", "model: student.onnx", 1) + c.output
			_, err := build.Plan(t.Context(), w.p, w.spec(t, text))
			if (err == nil) != (c.says == "") || err != nil && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
}

func write(t *testing.T, w *world, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}
