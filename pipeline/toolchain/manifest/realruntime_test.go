package manifest_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/conformance"
	"mlpromote.dev/mlpromote/pipeline/toolchain/manifest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// The runner of the Edge TPU works with the real LiteRT, and a delegate that leaves all to the processor. sample.tflite is what
// toolchain litert makes of the sample, with a batch of 1.
func TestEdgeTPURunnerOnLiteRT(t *testing.T) {
	t.Parallel()
	record, err := toolchaintest.Installed(t, "litert").Find("litert")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Load("../../../examples/toolchains/edgetpu.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	library := filepath.Join(dir, "libdelegate.so")
	if text, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, standIns+"litert/delegate.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	copied(t, "../../../examples/toolchains/runners/run_edgetpu.py", dir)
	m.Run.Program, m.Run.Python, m.Run.Inputs = filepath.Join(dir, "run_edgetpu.py"), record.Interpreter(), nil
	m.Run.Arguments = []string{"0", library}
	runner, err := manifest.NewRunner(t.Context(), m, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	of := &conformance.Subject{Scratch: t.TempDir()}
	if err := of.UseSample(); err != nil {
		t.Fatal(err)
	}
	model, err := os.ReadFile(standIns + "litert/sample.tflite")
	if err != nil {
		t.Fatal(err)
	}
	run := func(operator string) (toolchain.Outcome, error) {
		path := filepath.Join(t.TempDir(), "model_edgetpu.tflite")
		if err := os.WriteFile(path, append(model, operator...), 0o600); err != nil {
			t.Fatal(err)
		}
		job := toolchain.Job{Verb: toolchain.VerbRun, Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "e", Path: "e/model_edgetpu.tflite"}}}}
		job.Inputs = []toolchain.Input{toolchaintest.Input(t, toolchain.RoleModel, "e/model_edgetpu.tflite", path), toolchaintest.Input(t, toolchain.RoleCases, "c.safetensors", of.Cases)}
		return runner.Do(t.Context(), job, filepath.Join(t.TempDir(), "out"))
	}
	outcome, err := run("edgetpu-custom-op") // behind the file, where LiteRT does not look
	if err != nil {
		t.Fatal(err)
	}
	made, _ := outcome.File("outputs/e/c.safetensors")
	got, err := tensorfile.ReadFile(made.Path, tensorfile.Limits{})
	want, errWant := tensorfile.ReadFile(of.Want, tensorfile.Limits{})
	if err = errors.Join(err, errWant); err != nil {
		t.Fatal(err)
	}
	for i, w := range want["y"].Float64s() {
		if g := got["y"].Float64s()[i]; g-w > 1e-4 || w-g > 1e-4 {
			t.Errorf("output %d is %v, want %v", i, g, w)
		}
	}
	if _, err := run(""); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "has no operator for the Edge TPU") {
		t.Errorf("error %v, want that a model for the processor is refused", err)
	}
}

// qnnEnvironment is the folder of a Python environment with onnxruntime-qnn and onnx, on the system's Python. Its packages take 700 MB, so
// this project does not install them.
const qnnEnvironment = "MLPROMOTE_TEST_QNN"

// The manifest qnn really compiles and runs: onnxruntime-qnn has a compiler for Qualcomm's HTP, and a simulator of it, for x86-64.
func TestQNNOnItsSimulator(t *testing.T) {
	t.Parallel()
	environment := os.Getenv(qnnEnvironment)
	if environment == "" {
		t.Skipf("%s names no environment with onnxruntime-qnn and onnx", qnnEnvironment)
	}
	m, err := manifest.Load("../../../examples/toolchains/qnn.yaml")
	if err != nil {
		t.Fatal(err)
	}
	copied(t, "../../../examples/toolchains/compilers/epcontext.py", filepath.Join(environment, "bin"))
	m.Executable, m.Folder = filepath.Join(environment, "bin", "epcontext.py"), environment
	if err := os.Chmod(m.Executable, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copied(t, "../../../examples/toolchains/runners/run_epcontext.py", dir)
	m.Run.Program, m.Run.Python = filepath.Join(dir, "run_epcontext.py"), filepath.Join(environment, "bin", "python")
	compiler, identity := open(t, m)
	runner, err := manifest.NewRunner(t.Context(), m, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("onnxruntime-qnn %s", identity.Version)
	options, err := m.Profile().CompileOptions(vendors()["qnn"].target, "fp32")
	if err != nil {
		t.Fatal(err)
	}
	of := &conformance.Subject{Profile: m.Profile(), Options: options, CommandLine: true, Scratch: t.TempDir(), Validate: toolchaintest.ValidateSchema}
	of.New = fixed(toolchain.Split(compiler, nil, runner))
	if err := of.UseSample(); err != nil {
		t.Fatal(err)
	}
	for _, check := range conformance.Checks() {
		err := check.Run(t.Context(), of)
		if _, skipped := errors.AsType[conformance.Skipped](err); err != nil && !skipped {
			t.Errorf("want that %s: %v", check.Promise, err)
		}
		t.Log(check.Name, err)
	}
}
