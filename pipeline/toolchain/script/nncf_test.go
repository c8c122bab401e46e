package script_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// scaled is the digits network with a channel that no 8 bits hold beside the others.
const scaled = "../../../cmd/mlpromote/testdata/models/scaled.onnx"

func nncf(t *testing.T) toolchain.Driver {
	t.Helper()
	return script.New(script.Installed(toolchaintest.Installed(t, "nncf"), "nncf"), driverproc.Budget{})
}

// Every method of NNCF gives the same bytes in two processes, keeps inputs and outputs,
// and makes the weights smaller.
func TestNNCF(t *testing.T) {
	t.Parallel()
	driver := nncf(t)
	for name, c := range map[string]struct {
		model   string
		options map[string]any
		has     string  // an operator of the result
		smaller float64 // the share of the weights that is left at most
	}{
		"static":                  {digits + "digits.onnx", map[string]any{"method": "static-int8"}, "ai.onnx.QuantizeLinear", 0.3},
		"8-bit weights":           {tickets, map[string]any{"method": "weights-int8"}, "ai.onnx.DequantizeLinear", 0.35},
		"8-bit weights, channels": {digits + "digits.onnx", map[string]any{"method": "weights-int8", "symmetric": false}, "ai.onnx.DequantizeLinear", 0.3},
		"4-bit weights":           {tickets, map[string]any{"method": "weights-int4", "block_size": 64}, "com.microsoft.MatMulNBits", 0.35},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := withoutCalibration(t, c.model, c.options)
			if c.options["method"] == "static-int8" {
				job = quantize(t, c.options)
			}
			var digests []registry.Digest
			var model *onnx.Model
			for range 2 {
				outcome, err := driver.Do(t.Context(), job, t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				file, _ := outcome.File("model.onnx")
				digests, model = append(digests, file.Digest), open(t, file.Path)
			}
			if digests[0] != digests[1] {
				t.Errorf("two processes made %s and %s", digests[0], digests[1])
			}
			source := open(t, c.model)
			if diff := cmp.Diff([][]onnx.Value{source.Inputs, source.Outputs}, [][]onnx.Value{model.Inputs, model.Outputs}); diff != "" {
				t.Error("another interface", diff)
			}
			if share := float64(model.InitializerBytes) / float64(source.InitializerBytes); share > c.smaller {
				t.Errorf("%.2f of the weights are left, want at most %.2f", share, c.smaller)
			}
			if model.Ops[c.has] == 0 || len(model.CustomDomains()) > 0 {
				t.Errorf("operators %v: want %s, and none that is custom", model.Ops, c.has)
			}
		})
	}
}

// A constant that a Cast converts, as in models of JAX, is quantized as the constant that it becomes, and float64 leaves nothing behind.
func TestNNCFTakesConvertedConstants(t *testing.T) {
	t.Parallel()
	record, err := toolchaintest.Installed(t, "nncf").Find("nncf")
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(t.TempDir(), "casts.onnx")
	if out, err := exec.CommandContext(t.Context(), record.Interpreter(), absolute(t, "testdata/casts.py"), digits+"digits.onnx", made).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	job := quantize(t, map[string]any{"method": "static-int8"})
	job.Inputs[0] = toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", made)
	outcome, err := nncf(t).Do(t.Context(), job, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, _ := outcome.File("model.onnx")
	model := open(t, file.Path)
	if model.Ops["ai.onnx.Cast"] > 0 || model.Ops["ai.onnx.QuantizeLinear"] == 0 || model.Tensors["float64"] > 0 {
		t.Errorf("operators %v, tensors %v", model.Ops, model.Tensors)
	}
}

// Where int8 costs too much, layers go back to full precision until the accuracy is kept.
func TestNNCFKeepsAccuracy(t *testing.T) {
	t.Parallel()
	driver := nncf(t)
	type judged struct {
		Model, Quantized float64
		Count            int
	}
	run := func(options map[string]any) (judged, map[string]int) {
		job := quantize(t, options)
		job.Inputs[0] = toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", scaled)
		job.Inputs = append(job.Inputs, toolchaintest.Input(t, toolchain.RoleCases, "cases-00000.safetensors", digits+"cases/cases-00000.safetensors"))
		outcome, err := driver.Do(t.Context(), job, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var result struct{ Accuracy judged }
		if err := json.Unmarshal(outcome.Result, &result); err != nil {
			t.Fatal(err)
		}
		file, _ := outcome.File("model.onnx")
		return result.Accuracy, open(t, file.Path).Ops
	}
	aware := map[string]any{"method": "static-int8", "accuracy_aware": true, "labels": "label", "output": "logits", "max_drop": 1.0}
	anyhow, all := run(aware)
	aware["max_drop"] = 0.005
	kept, some := run(aware)
	if anyhow.Model-anyhow.Quantized < 0.02 || anyhow.Count != 360 {
		t.Errorf("int8 of everything: %+v: the model is too easy for this test", anyhow)
	}
	if kept.Model-kept.Quantized > 0.005 {
		t.Errorf("asked to lose at most 0.005: %+v", kept)
	}
	if some["ai.onnx.QuantizeLinear"] >= all["ai.onnx.QuantizeLinear"] || some["ai.onnx.QuantizeLinear"] == 0 {
		t.Errorf("%d of %d quantizers are left, want some", some["ai.onnx.QuantizeLinear"], all["ai.onnx.QuantizeLinear"])
	}
}
