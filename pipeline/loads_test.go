//go:build cgo

package pipeline_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// loads reports whether a job is that by which a build loads an engine.
func loads(job toolchain.Job) bool {
	return job.Verb == toolchain.VerbRun && strings.HasPrefix(job.Run.Engines[0].ID, "loaded-")
}

// A build that makes an engine that does not load, or that has other outputs than the reference model, ends
// before anything is signed or published.
func TestBuildLoadsEngines(t *testing.T) {
	t.Parallel()
	outputs := func(name string, dtype tensor.DType, shape ...int64) map[string]tensor.Tensor {
		size := int64(dtype.Size())
		for _, n := range shape {
			size *= n
		}
		return map[string]tensor.Tensor{name: {DType: dtype, Shape: shape, Data: make([]byte, size)}}
	}
	for name, c := range map[string]struct {
		left map[string]tensor.Tensor // in place of the engine's outputs; nil: the run fails
		code registry.Code            // empty: the build succeeds
		want string
	}{
		"the same":     {outputs("y", tensor.Float32, 1, 1), "", ""},
		"more outputs": {map[string]tensor.Tensor{"y": outputs("y", tensor.Float32, 1, 1)["y"], "z": outputs("z", tensor.Float32, 1, 1)["z"]}, "", ""},
		"another name": {outputs("output_0", tensor.Float32, 1, 1), registry.CodeInvalid, `the engine has no output "y": it has output_0`},
		"another type": {outputs("y", tensor.Float16, 1, 1), registry.CodeInvalid, `output "y" is float16 [1] for one case, the reference's is float32 [1]`},
		"more columns": {outputs("y", tensor.Float32, 1, 2), registry.CodeInvalid, `output "y" is float32 [2] for one case, the reference's is float32 [1]`},
		"another rank": {outputs("y", tensor.Float32, 1, 1, 1), registry.CodeInvalid, `output "y" is float32 [1 1] for one case, the reference's is float32 [1]`},
		"no case":      {outputs("y", tensor.Float32), registry.CodeInvalid, `output "y" has the shape [] for one case`},
		"two cases":    {outputs("y", tensor.Float32, 2, 1), registry.CodeInvalid, `output "y" has the shape [2 1] for one case`},
		"a crash":      {nil, registry.CodeInternal, "signal: segmentation fault"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.run = func(job toolchain.Job, outDir string) error {
				if !loads(job) {
					return nil
				}
				if c.left == nil {
					return registry.Errorf(registry.CodeInternal, "signal: segmentation fault")
				}
				writeTensors(t, filepath.Join(outDir, "outputs", job.Run.Engines[0].ID, "cases-00000.safetensors"), c.left)
				return nil
			}
			_, err := build.Build(t.Context(), w.p, w.spec(t, onlyFP32), build.Options{})
			if c.code == "" && err != nil {
				t.Fatal(err)
			}
			if c.code != "" && (registry.CodeOf(err) != c.code ||
				!strings.HasPrefix(err.Error(), "load linux-amd64-v1/fp32: ") || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %s for the engine with %q", err, c.code, c.want)
			}
			if heads, err := w.Heads(t.Context(), "staging", ""); err != nil || (len(heads) == 0) != (c.code != "") {
				t.Errorf("heads %v, error %v; want one if and only if the build succeeds", heads, err)
			}
		})
	}
}

// Engines for other machines are not loaded, and provenance says which were. Engines of the same bytes are
// loaded once.
func TestBuildLoadsWhatThisMachineCan(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	loaded := 0
	w.run = func(job toolchain.Job, _ string) error {
		if loads(job) {
			loaded++
		}
		return nil
	}
	built := w.built(t, strings.Replace(onlyFP32, "linux/amd64/v1", "linux/amd64/v1, linux/amd64/v2, linux/arm64", 1), build.Options{})
	if loaded != 1 {
		t.Errorf("%d loads, want 1 for two targets of the same bytes", loaded)
	}
	claims, _, err := w.Claims(t.Context(), "staging", built.Release)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range built.Release.Engines {
		i := slices.IndexFunc(claims, func(c evidence.Claim) bool {
			return c.Subject == e.Digest && c.Statement.PredicateType == evidence.PredicateProvenance
		})
		want := `"loaded":true`
		if e.Target.CPU.Arch == "arm64" {
			want = `"loaded":false`
		}
		if i < 0 || !strings.Contains(string(claims[i].Statement.Predicate), want) {
			t.Errorf("provenance of %s lacks %s", e.Label(), want)
		}
	}
}

// Where the runtime does not work, an engine counts as not loaded, with a warning.
func TestBuildWithoutItsRuntime(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.run = func(job toolchain.Job, _ string) error {
		if loads(job) || job.Verb == toolchain.VerbProbe {
			return registry.Errorf(registry.CodeUnavailable, "invalid ELF header")
		}
		return nil
	}
	built := w.built(t, strings.Replace(onlyFP32, "linux/amd64/v1", "linux/amd64/v1, linux/amd64/v2", 1), build.Options{})
	if len(w.warnings) != 1 || !strings.Contains(w.warnings[0], "linux-amd64-v2/fp32 was not loaded here") ||
		!strings.Contains(w.warnings[0], "invalid ELF header") {
		t.Errorf("warnings %q, want one that names the engine and the cause", w.warnings)
	}
	claims, _, err := w.Claims(t.Context(), "staging", built.Release)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		if c.Statement.PredicateType == evidence.PredicateProvenance && !strings.Contains(string(c.Statement.Predicate), `"loaded":false`) {
			t.Errorf("provenance %s, want that the engine was not loaded", c.Statement.Predicate)
		}
	}
}

// Where the runtime works, an engine that exceeds its time or memory is refused.
func TestBuildOfAnEngineThatHangs(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.run = func(job toolchain.Job, _ string) error {
		if loads(job) {
			return registry.Errorf(registry.CodeUnavailable, "exceeded its budget of 1h")
		}
		return nil
	}
	_, err := build.Build(t.Context(), w.p, w.spec(t, onlyFP32), build.Options{})
	if !registry.HasCode(err, registry.CodeUnavailable) || !strings.Contains(err.Error(), "exceeded its budget") {
		t.Errorf("error %v, want that of the load", err)
	}
}

// A build for other machines alone has no step that loads engines.
func TestBuildForOtherMachines(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.built(t, strings.Replace(onlyFP32, "linux/amd64/v1", "linux/arm64", 1), build.Options{})
	if steps := w.done(progress.Done); slices.ContainsFunc(steps, func(s string) bool { return strings.HasPrefix(s, "load ") }) {
		t.Errorf("steps %q, want none that loads", steps)
	}
}

// Where ONNX Runtime itself fails on an engine that says nothing of how it is loaded, a load profile is offered: its optimizer can fail.
func TestBuildOffersALoadProfile(t *testing.T) {
	t.Parallel()
	const hint = "give the variant a load profile with less of it"
	for name, c := range map[string]struct {
		code  registry.Code
		load  string
		hints bool
	}{
		"it crashes":                {registry.CodeInternal, "", true},
		"it refuses the model":      {registry.CodeInvalid, "", false},
		"it crashes with a profile": {registry.CodeInternal, ", load: {options: {graph_optimization_level: basic}}", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.run = func(job toolchain.Job, _ string) error {
				if loads(job) {
					return registry.Errorf(c.code, "it does not load")
				}
				return nil
			}
			_, err := build.Build(t.Context(), w.p, w.spec(t, strings.Replace(onlyFP32, "[fp32]", "[{name: fp32"+c.load+"}]", 1)), build.Options{})
			if !registry.HasCode(err, c.code) || strings.Contains(strings.Join(registry.Hints(err), "\n"), hint) != c.hints {
				t.Errorf("error %v with hints %q, want %s, and a load profile offered: %t", err, registry.Hints(err), c.code, c.hints)
			}
		})
	}
}

// A driver names the operator of one node that its runtime does not compute in float16; the hint names all nodes of it.
func TestBuildKeepsOperatorsInFloat32(t *testing.T) {
	t.Parallel()
	for quantize, hint := range map[string]string{
		"{method: fp16}":                    "write quantize: {method: fp16, exclude: [Mul_0, Mul_1]}",
		"{method: fp16, exclude: [before]}": "write quantize: {method: fp16, exclude: [before, Mul_0, Mul_1]}",
		"{method: dynamic}":                 "",
	} {
		t.Run(quantize, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.run = func(job toolchain.Job, _ string) error {
				if loads(job) {
					return registry.Errorf(registry.CodeInvalid, "%w", &toolchain.Failure{Subject: toolchain.Subject{Op: "Mul", DType: "float16"}, Err: errors.New("no kernel")})
				}
				return nil
			}
			_, err := build.Build(t.Context(), w.p, w.spec(t, strings.Replace(onlyFP32, "[fp32]", "[{name: small, quantize: "+quantize+"}]", 1)), build.Options{})
			hints := strings.Join(registry.Hints(err), "\n")
			if !registry.HasCode(err, registry.CodeInvalid) || hint != "" && !strings.Contains(hints, hint) || hint == "" && strings.Contains(hints, "exclude") {
				t.Errorf("error %v with hints %q, want %q", err, hints, hint)
			}
		})
	}
}
