package script_test

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// evaluated is what ONNX's evaluator says of a run.
type evaluated struct {
	toolchain.RunResult
	Evaluator, Reason string
	Missing           []string
}

const digitCases = digits + "cases/cases-00000.safetensors"

const models = "../../../cmd/mlpromote/testdata/models/"

// evaluate runs a model on the cases of the digits.
func evaluate(t *testing.T, model string, seconds float64) (evaluated, toolchain.Outcome, error) {
	t.Helper()
	outcome, err := script.New(installed(t), driverproc.Budget{}).Do(t.Context(), toolchain.Job{
		Verb: toolchain.VerbRun, Options: map[string]any{"seconds": seconds},
		Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "reference", Path: "model.onnx"}}},
		Inputs: []toolchain.Input{
			toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", model),
			toolchaintest.Input(t, toolchain.RoleCases, "cases-00000.safetensors", digitCases),
		},
	}, t.TempDir())
	var result evaluated
	if err == nil {
		toolchaintest.CheckSchema(t, "runResult", outcome.Result)
		if err := json.Unmarshal(outcome.Result, &result); err != nil {
			t.Fatal(err)
		}
	}
	return result, outcome, err
}

// The evaluator classifies the digits as their labels say.
func TestEvaluator(t *testing.T) {
	t.Parallel()
	result, outcome, err := evaluate(t, digits+"digits.onnx", 600)
	if err != nil {
		t.Fatal(err)
	}
	if result.Cases != 360 || len(result.Engines[0].TimingsNS) != 360 ||
		result.Evaluator != "1.23.1" || result.Reason != "" || len(result.Missing) != 0 {
		t.Errorf("result %+v, want one of 360 cases by ONNX 1.23.1", result)
	}
	file, ok := outcome.File("outputs/reference/cases-00000.safetensors")
	if !ok {
		t.Fatalf("files %v, want the outputs", outcome.Files)
	}
	outputs, err := tensorfile.ReadFile(file.Path, tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	inputs, err := tensorfile.ReadFile(digitCases, tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range outputs {
		right, total, err := tensor.Top1(o, inputs["label"])
		if err != nil || float64(right) < 0.95*float64(total) || total != 360 {
			t.Errorf("output %s: %d of %d as labelled (%v), want 95 %% of 360", name, right, total, err)
		}
	}
}

// A model with operators that the evaluator lacks is not run, also where a case would not fit.
func TestEvaluatorListsWhatItLacks(t *testing.T) {
	t.Parallel()
	result, outcome, err := evaluate(t, models+"halved.onnx", 60)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"mlpromote.test::Halve"}; !slices.Equal(result.Missing, want) || result.Cases != 0 || len(outcome.Files) != 0 {
		t.Errorf("result %+v with %d files, want %q and no case", result, len(outcome.Files), want)
	}
}

// The evaluator stops within a case when its time is over.
func TestEvaluatorKeepsItsTime(t *testing.T) {
	t.Parallel()
	result, _, err := evaluate(t, digits+"digits.onnx", 0.001)
	if err != nil {
		t.Fatal(err)
	}
	if result.Cases != 0 || !strings.Contains(result.Reason, "the first case did not end within 0.001 s") {
		t.Errorf("result %+v, want no case and a reason", result)
	}
}

func TestEvaluatorRefuses(t *testing.T) {
	t.Parallel()
	for _, seconds := range []float64{0, -1, 3601, math.SmallestNonzeroFloat64} {
		if _, _, err := evaluate(t, digits+"digits.onnx", seconds); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%v seconds: error %v, want CodeInvalid", seconds, err)
		}
	}
	if _, _, err := evaluate(t, digits+"predict.py", 60); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("a text as model: error %v, want CodeInvalid", err)
	}
}

// What the evaluator's modules do beside the protocol, tested in their own language.
func TestEvaluatorInPython(t *testing.T) {
	t.Parallel()
	program, err := installed(t)()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, code := range program.Code {
		if err := os.WriteFile(filepath.Join(dir, name), code, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), program.Interpreter, "-s", "-P", "-B", "testdata/evaluator_test.py", dir).CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
