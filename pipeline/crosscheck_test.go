//go:build cgo

package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// evaluator runs the models that scaling writes as y = weight * x, and says besides what a test wants.
type evaluator struct {
	linear
	weight float32
	cases  int                                // that it runs; -1: all
	said   map[string]any                     // in its result besides
	left   func(t *testing.T, outputs string) // changes what it leaves; may be nil
	fails  error                              // in place of all
	t      *testing.T
}

func (e evaluator) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	if e.fails != nil {
		return toolchain.Outcome{}, e.fails
	}
	outcome, err := e.linear.Do(ctx, job, outDir)
	if err != nil {
		return outcome, err
	}
	outputs := filepath.Join(outDir, "outputs", "reference")
	given := 0
	for _, in := range job.Inputs {
		if in.Role != toolchain.RoleCases {
			continue
		}
		given++
		if _, err := scale(in.Path, filepath.Join(outputs, in.Name), e.weight); err != nil {
			return toolchain.Outcome{}, err
		}
	}
	if e.left != nil {
		e.left(e.t, outputs)
	}
	if e.cases < 0 {
		e.cases = given
	}
	said := map[string]any{"evaluator": "1.2.3", "cases": e.cases}
	for k, v := range e.said {
		said[k] = v
	}
	if outcome.Result, err = json.Marshal(said); err != nil {
		return toolchain.Outcome{}, err
	}
	outcome.Files, err = toolchain.Collect(outDir)
	return outcome, err
}

// evaluatedBy gives the world an evaluator.
func (w *world) evaluatedBy(d toolchain.Driver) {
	open := w.p.Toolchain
	w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
		tools, err := open(ctx, name)
		tools.Evaluator = d
		return tools, err
	}
}

// crossCheckIn is what the provenance of the first engine says, and nil without a release.
func (w *world) crossCheckIn(t *testing.T) *evidence.CrossCheck {
	t.Helper()
	heads, err := w.Heads(t.Context(), "staging", "")
	if err != nil {
		t.Fatal(err)
	}
	if len(heads) == 0 {
		return nil
	}
	r, err := w.Release(t.Context(), "staging", heads[0].Model, "")
	if err != nil {
		t.Fatal(err)
	}
	claims, _, err := w.Claims(t.Context(), "staging", r)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		if check := c.Statement.CrossCheck(); check != nil {
			return check
		}
	}
	t.Fatal("no provenance says who cross-checked")
	return nil
}

// Golden outputs of the cases 1, -2 and 3 by y = 1.5 * x, whose range is 7.5, so that the tolerance of the last
// one is 0.0075 + 0.00045.
func TestBuildCrossChecks(t *testing.T) {
	t.Parallel()
	one := func(name string, dtype tensor.DType, data []byte, shape ...int64) func(*testing.T, string) {
		return func(t *testing.T, outputs string) {
			files, err := filepath.Glob(filepath.Join(outputs, "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				writeTensors(t, f, map[string]tensor.Tensor{name: {DType: dtype, Shape: shape, Data: data}})
			}
		}
	}
	nan := binaryFloats(float32(math.NaN()))
	for name, c := range map[string]struct {
		evaluator evaluator
		accept    string
		err       string // part of the error; empty: the build succeeds
		warning   string // part of the only warning; empty: there is none
		said      string // what provenance says
	}{
		"the same": {evaluator: evaluator{weight: 1.5, cases: -1}, said: "3 of 3 cases cross-checked by the onnx reference evaluator 1.2.3, all equal"},
		"in the tolerance": {evaluator: evaluator{weight: 1.502, cases: -1},
			said: "3 of 3 cases cross-checked by the onnx reference evaluator 1.2.3, the largest difference is 0.75 of the tolerance"},
		"out of tolerance": {evaluator: evaluator{weight: 1.503, cases: -1},
			err: `output "y"[0] of case 2 is 4.5 by ONNX Runtime and 4.508999824523926 by the onnx reference evaluator 1.2.3, 1.13 times the tolerance apart`},
		"accepted": {evaluator: evaluator{weight: 3, cases: -1}, accept: "the export is known to be off",
			warning: `the spec accepts it: "the export is known to be off"`,
			said:    `3 of 3 cases cross-checked by the onnx reference evaluator 1.2.3, the largest difference is 5.7e+02 of the tolerance; accepted: "the export is known to be off"`},
		"NaN": {evaluator: evaluator{cases: -1, left: one("y", tensor.Float32, nan, 1, 1)}, err: "by ONNX Runtime and NaN by the onnx reference evaluator"},
		"another shape": {evaluator: evaluator{cases: -1, left: one("y", tensor.Float32, append(nan, nan...), 1, 2)},
			err: `output "y" by ONNX Runtime and by the onnx reference evaluator 1.2.3: case 1: the engine has shape [1 2], the reference [1 1]`},
		"another type": {evaluator: evaluator{cases: -1, left: one("y", tensor.Int32, nan, 1, 1)}, err: "the reference is float32, the engine int32"},
		"missing operators": {evaluator: evaluator{said: map[string]any{"missing": []string{"a::B", "c::D"}}},
			warning: "not cross-checked: the onnx reference evaluator 1.2.3 lacks a::B, c::D",
			said:    "not cross-checked: the onnx reference evaluator 1.2.3 lacks a::B, c::D"},
		"no time for one": {evaluator: evaluator{said: map[string]any{"reason": "the first case did not end within 60 s"}},
			warning: "not cross-checked: the first case did not end within 60 s", said: "not cross-checked: the first case did not end within 60 s"},
		"time for one": {evaluator: evaluator{weight: 1.5, cases: 1, said: map[string]any{"reason": "the next case would not end within 60 s"}},
			said: "1 of 3 cases cross-checked by the onnx reference evaluator 1.2.3 (the next case would not end within 60 s)"},
		"a crash": {evaluator: evaluator{fails: registry.Errorf(registry.CodeInternal, "signal: killed")},
			warning: "not cross-checked: signal: killed", said: "not cross-checked: signal: killed"},
		"too many cases": {evaluator: evaluator{weight: 1.5, cases: 4}, err: "it has more cases than it was given"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			c.evaluator.t = t
			w.evaluatedBy(c.evaluator)
			text := onlyFP32
			if c.accept != "" {
				text += "reference: {accept: " + c.accept + "}\n"
			}
			built, err := build.Build(t.Context(), w.p, w.spec(t, text), build.Options{})
			if c.err == "" && err != nil {
				t.Fatal(err)
			}
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want one with %q", err, c.err)
			}
			if c.err != "" && c.evaluator.cases < 0 && registry.CodeOf(err) != registry.CodeLimit {
				t.Errorf("error %v, want CodeLimit", err)
			}
			if n := len(w.warnings); n > 1 || (n == 1) != (c.warning != "") || n == 1 && !strings.Contains(w.warnings[0], c.warning) {
				t.Errorf("warnings %q, want %q", w.warnings, c.warning)
			}
			got := w.crossCheckIn(t)
			if (got == nil) != (c.err != "") {
				t.Fatalf("cross-check %v, want a release if and only if the build succeeds", got)
			}
			if got != nil && (got.String() != c.said || built.CrossCheck.String() != c.said) {
				t.Errorf("provenance says %q and the result %q, want %q", got, built.CrossCheck, c.said)
			}
		})
	}
}

func binaryFloats(v ...float32) []byte {
	var data bytes.Buffer
	for _, f := range v {
		bits := math.Float32bits(f)
		data.Write([]byte{byte(bits), byte(bits >> 8), byte(bits >> 16), byte(bits >> 24)})
	}
	return data.Bytes()
}

// A large model is not evaluated, and its build says so.
func TestBuildOfALargeModelIsNotCrossChecked(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.evaluatedBy(evaluator{weight: 1.5, cases: -1, t: t})
	w.p.CrossCheckBelow = int64(len(scaling(1.5, 1, "made by hand")))
	w.built(t, onlyFP32, build.Options{})
	if len(w.warnings) != 1 || !strings.Contains(w.warnings[0], "not cross-checked: the model has ") {
		t.Errorf("warnings %q, want one that names the size", w.warnings)
	}
	if got := w.crossCheckIn(t); got.Cases != 0 || !strings.Contains(got.Reason, "the model has ") {
		t.Errorf("cross-check %+v, want nothing for the size", got)
	}
}

// What the framework of a source computed is not computed again.
func TestBuildCrossCheckedByTheFramework(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.evaluatedBy(evaluator{weight: 7, cases: -1, t: t})
	w.imports(1.5)
	if err := os.WriteFile(filepath.Join(w.dir, "model.pkl"), []byte(pickle), 0o600); err != nil {
		t.Fatal(err)
	}
	w.built(t, foreign, build.Options{})
	if got, want := w.crossCheckIn(t).String(), "3 of 3 cases cross-checked by the source framework, fakelearn 2.1 (they are its own outputs)"; got != want {
		t.Errorf("cross-check %q, want %q", got, want)
	}
}

// The evaluator runs beside the steps of engines, from the cache where it ran before.
func TestBuildCrossChecksFromCache(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.evaluatedBy(toolchain.Cache(evaluator{weight: 1.5, cases: -1, t: t}, toolchain.NewStore(t.TempDir())))
	if first := w.built(t, onlyFP32, build.Options{}); first.Steps != 3 || first.Cached != 0 {
		t.Errorf("the first build: %d of %d steps cached, want 0 of 3", first.Cached, first.Steps)
	}
	if second := w.built(t, digits, build.Options{}); second.Steps != 5 || second.Cached != 1 {
		t.Errorf("the second build: %d of %d steps cached, want 1 of 5", second.Cached, second.Steps)
	}
	if done := w.done(progress.Done); !slices.Contains(done, "cross-check the reference") {
		t.Errorf("steps %q, want one that cross-checks", done)
	}
}

// ONNX's evaluator confirms what ONNX Runtime computes.
func TestBuildCrossCheckedByONNX(t *testing.T) {
	t.Parallel()
	w := setupReal(t, 1.5)
	w.evaluatedBy(script.New(script.Installed(toolchaintest.Installer(t, ort.Name), ort.Name), driverproc.Budget{}))
	w.built(t, onlyFP32, build.Options{})
	if got, want := w.crossCheckIn(t).String(), "3 of 3 cases cross-checked by the onnx reference evaluator 1.23.1, all equal"; got != want {
		t.Errorf("cross-check %q, want %q", got, want)
	}
}

// ONNX Runtime computes another value than ONNX defines for one of ONNX's own tests: 4 in place of 22/7.
func TestBuildOfWhatONNXRuntimeGetsWrong(t *testing.T) {
	t.Parallel()
	installer := toolchaintest.Installer(t, ort.Name)
	record, err := installer.Find(ort.Name)
	if err != nil {
		t.Fatal(err)
	}
	const test = "test_resize_downsample_scales_linear_align_corners"
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), record.Interpreter(), "-s", "-P",
		"-B", "toolchain/ort/testdata/nodetests.py", dir, test, "0").CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	w := setupReal(t, 1.5)
	w.evaluatedBy(script.New(script.Installed(installer, ort.Name), driverproc.Budget{}))
	for from, to := range map[string]string{"model.onnx": "model.onnx", "case-0.safetensors": "cases/cases-00000.safetensors"} {
		data, err := os.ReadFile(filepath.Join(dir, test, from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.dir, to), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err = build.Build(t.Context(), w.p, w.spec(t, onlyFP32), build.Options{})
	if registry.CodeOf(err) != registry.CodeLimit || !strings.Contains(err.Error(), "of case 0 is 4 by ONNX Runtime and 3.14285") {
		t.Errorf("error %v, want CodeLimit with both values", err)
	}
}
