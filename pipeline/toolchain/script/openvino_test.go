package script_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
)

// An engine in half precision keeps the names of its inputs and outputs, also for who loads it without us.
func TestOpenVINOKeepsNamesOfHalved(t *testing.T) {
	t.Parallel()
	installer := toolchaintest.Installed(t, "openvino")
	halved, compiled := t.TempDir(), t.TempDir()
	_, err := script.New(installed(t), driverproc.Budget{}).Do(t.Context(),
		withoutCalibration(t, digits+"digits.onnx", map[string]any{"method": "fp16"}), halved)
	if err != nil {
		t.Fatal(err)
	}
	job := toolchain.Job{Verb: toolchain.VerbCompile, Options: map[string]any{}, Inputs: []toolchain.Input{
		toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", filepath.Join(halved, "model.onnx"))}}
	if _, err := script.New(script.Installed(installer, "openvino"), driverproc.Budget{}).Do(t.Context(), job, compiled); err != nil {
		t.Fatal(err)
	}
	record, err := installer.Find("openvino")
	if err != nil {
		t.Fatal(err)
	}
	const plain = `
import sys, openvino
m = openvino.Core().compile_model(sys.argv[1], "CPU")
print(*[n for port in m.inputs + m.outputs for n in sorted(port.names)])`
	cmd := exec.CommandContext(t.Context(), record.Interpreter(), "-c", plain, filepath.Join(compiled, "model.xml"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if got := strings.TrimSpace(string(out)); err != nil || got != "image logits" {
		t.Errorf("a plain load names %q (%v), want image logits", got, err)
	}
}

// A node that OpenVINO cannot convert is named by what it makes, with the cause.
func TestOpenVINONamesNodes(t *testing.T) {
	t.Parallel()
	driver := script.New(script.Installed(toolchaintest.Installed(t, "openvino"), "openvino"), driverproc.Budget{})
	_, err := driver.Do(t.Context(), toolchain.Job{Verb: toolchain.VerbCompile, Options: map[string]any{},
		Inputs: []toolchain.Input{toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", models+"cubic.onnx")}}, t.TempDir())
	const want = "Upsample-9 that makes 'y': cubic - this type of interpolation mode is not supported"
	if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one that says %s", err, want)
	}
}
