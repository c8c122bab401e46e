package script_test

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
)

// xla gives a folder in which a program of testdata has made models with the toolchain's own JAX, a
// driver, and a function that compares a program with a model.
func xla(t *testing.T, maker string) (dir string, driver toolchain.Driver, compare func(program, model string)) {
	t.Helper()
	installer := toolchaintest.Installed(t, "xla")
	record, err := installer.Find("xla")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	python := func(name string, args ...string) string {
		path, err := filepath.Abs(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), record.Interpreter(), append([]string{path}, args...)...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, err)
		}
		return strings.TrimSpace(string(out))
	}
	python(maker)
	return dir, script.New(script.Installed(installer, "xla"), driverproc.Budget{}), func(program, model string) {
		t.Helper()
		worst, err := strconv.ParseFloat(python("xla_compare.py", program, model), 64)
		if err != nil || worst > 1e-4 {
			t.Errorf("%s: outputs differ by %g from those of %s (%v)", filepath.Base(program), worst, filepath.Base(model), err)
		}
	}
}

// Programs of JAX become ONNX that computes the same, with the names of their inputs and outputs and
// open dimensions; and what has no ONNX has a name.
func TestImportJAX(t *testing.T) {
	t.Parallel()
	dir, driver, compare := xla(t, "xla_programs.py")
	for name, want := range map[string]string{
		"convolutions-batch": "image float32[batch,8,8,1] to class int32[batch]", "convolutions-1": "image float32[1,8,8,1] to class int32[1]",
		"encoder-batch": "ids int32[batch,6] to output0 float32[batch,16]", "encoder-1": "ids int32[1,6] to output0 float32[1,16]",
	} {
		path := filepath.Join(dir, name+".jax")
		outcome, err := driver.Do(t.Context(), jaxJob(t, path), t.TempDir())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		made, _ := outcome.File("model.onnx")
		model := open(t, made.Path)
		in, out := model.Inputs[0], model.Outputs[0]
		if got := in.Name + " " + in.String() + " to " + out.Name + " " + out.String(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		compare(path, made.Path)
	}
	for name, says := range map[string]string{
		"sorting": "no translation to ONNX for stablehlo.sort", "loop": "no translation to ONNX for stablehlo.while",
		"cuda": "the program is for cuda: export it with platforms=['cpu']", "factors": "which is outside of it",
	} {
		_, err := driver.Do(t.Context(), jaxJob(t, filepath.Join(dir, name+".jax")), t.TempDir())
		if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s: %s", name, err, registry.CodeInvalid, says)
		}
	}
}

func jaxJob(t *testing.T, path string) toolchain.Job {
	t.Helper()
	return toolchain.Job{Verb: toolchain.VerbImport, Inputs: []toolchain.Input{toolchaintest.Input(t, toolchain.RoleModel, "source.jax", path)}}
}

// Models in ONNX become programs that compute the same; and what XLA has no form for has a name.
func TestCompileForXLA(t *testing.T) {
	t.Parallel()
	dir, driver, compare := xla(t, "xla_models.py")
	job := func(name string) toolchain.Job {
		return toolchain.Job{Verb: toolchain.VerbCompile, Inputs: []toolchain.Input{
			toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", filepath.Join(dir, name+".onnx"))}}
	}
	bounded := job("places") // its table of positions has an end
	bounded.Options = map[string]any{"sizes": map[string]any{"batch": []any{1, 1, 4}, "tokens": []any{2, 3, 6}}}
	for name, job := range map[string]toolchain.Job{"shapes": job("shapes"), "layers": job("layers"), "norms": job("norms"), "bytes": job("bytes"),
		"tokens": job("tokens"), "blocks": job("blocks"), "places": bounded} {
		outcome, err := driver.Do(t.Context(), job, t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		made, _ := outcome.File("model.jax")
		compare(made.Path, filepath.Join(dir, name+".onnx"))
	}
	for name, says := range map[string]string{
		"places": "node Add: JAX cannot trace Add",
		"sizes":  "a shape, an axis or a size is computed from inputs", "loop": "no translation to JAX for Hardmax",
	} {
		if _, err := driver.Do(t.Context(), job(name), t.TempDir()); registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s: %s", name, err, registry.CodeInvalid, says)
		}
	}
}

// HLO of a model with fixed sizes computes the same; a model with open ones is refused by the name of its input.
func TestCompileToHLO(t *testing.T) {
	t.Parallel()
	dir, driver, compare := xla(t, "xla_models.py")
	job := func(name string) toolchain.Job {
		return toolchain.Job{Verb: toolchain.VerbCompile, Options: map[string]any{"form": "hlo"}, Inputs: []toolchain.Input{
			toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", filepath.Join(dir, name+".onnx"))}}
	}
	outcome, err := driver.Do(t.Context(), job("layers"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	made, _ := outcome.File("model.hlo.pb")
	compare(made.Path, filepath.Join(dir, "layers.onnx"))
	again, err := driver.Do(t.Context(), job("layers"), t.TempDir())
	if second, _ := again.File("model.hlo.pb"); err != nil || second.Digest != made.Digest {
		t.Errorf("made again: %s (%v), want %s", second.Digest, err, made.Digest)
	}
	if _, err := driver.Do(t.Context(), job("norms"), t.TempDir()); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "input x has open dimensions") {
		t.Errorf("open sizes: %v, want that input x is named", err)
	}
}
