package script_test

import (
	"encoding/binary"
	"math"
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
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// weights takes the weights out of the digits network, and computes what ONNX's own
// reference makes of the first cases.
const weights = `
import json, pathlib, struct, sys
import numpy, onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

def save(path, tensors):
    header, body = {}, b""
    for name, array in sorted(tensors.items()):
        raw = numpy.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)

model = onnx.load(sys.argv[1])
named = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
named["dense.weight"] = named["dense.weight"].T  # as [out, in]
save("digits.safetensors", named)
save("half.safetensors", {**named, "dense.bias": named["dense.bias"][:3]})
images = numpy.random.RandomState(1).random_sample((5, 1, 8, 8)).astype(numpy.float32)
save("cases.safetensors", {"input": images})
save("want.safetensors", {"output": ReferenceEvaluator(model).run(None, {"image": images})[0]})
`

var digitLayers = []string{"conv1", "relu", "conv2", "relu", "maxpool", "flatten", "dense"}

// withWeights runs the program above, and gives its folder and a driver.
func withWeights(t *testing.T) (dir string, driver toolchain.Driver) {
	t.Helper()
	installer := toolchaintest.Installer(t, "safetensors")
	record, err := installer.Find("safetensors")
	if err != nil {
		t.Fatal(err)
	}
	model, err := filepath.Abs(digits + "digits.onnx")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "weights.py"), []byte(weights), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), record.Interpreter(), "weights.py", model)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir, script.New(script.Installed(installer, "safetensors"), driverproc.Budget{})
}

// floats are the numbers of the tensor output, of the first five cases.
func floats(t *testing.T, path string) []float64 {
	t.Helper()
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := f.Rows("output", 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	var all []float64
	for i := 0; i < len(rows.Data); i += 4 {
		all = append(all, float64(math.Float32frombits(binary.LittleEndian.Uint32(rows.Data[i:]))))
	}
	return all
}

// The weights of a convolutional network give the network back: the same initializers
// under the same names, and predictions that ONNX's reference makes of the original.
func TestImportSafetensors(t *testing.T) {
	t.Parallel()
	dir, driver := withWeights(t)
	options := map[string]any{"kind": "cnn", "input": []string{"1", "8", "8"}, "layers": digitLayers}
	job := importJob(t, dir, "digits.safetensors", options)
	outcome, err := driver.Do(t.Context(), job, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	made, ok := outcome.File("model.onnx")
	if !ok {
		t.Fatalf("files %v", outcome.Files)
	}
	source, model := open(t, digits+"digits.onnx"), open(t, made.Path)
	if model.InitializerBytes != source.InitializerBytes || model.Nodes != source.Nodes || model.Outputs[0].String() != source.Outputs[0].String() {
		t.Errorf("%d bytes in %d nodes to %v, want %d in %d to %v", model.InitializerBytes,
			model.Nodes, model.Outputs, source.InitializerBytes, source.Nodes, source.Outputs)
	}

	job.Verb = toolchain.VerbRun
	job.Inputs = append(job.Inputs, toolchaintest.Input(t, toolchain.RoleCases, "cases-00000.safetensors", filepath.Join(dir, "cases.safetensors")))
	job.Run = &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "reference", Path: "source.safetensors"}}}
	outcome, err = driver.Do(t.Context(), job, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	predicted, ok := outcome.File("outputs/reference/cases-00000.safetensors")
	if !ok {
		t.Fatalf("files %v", outcome.Files)
	}
	got, want := floats(t, predicted.Path), floats(t, filepath.Join(dir, "want.safetensors"))
	if len(got) != 50 || len(want) != 50 {
		t.Fatalf("%d numbers, want %d of 50", len(got), len(want))
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-5*(1+math.Abs(want[i])) {
			t.Errorf("number %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func TestImportSafetensorsRefuses(t *testing.T) {
	t.Parallel()
	dir, driver := withWeights(t)
	for name, c := range map[string]struct {
		file    string
		options map[string]any
		says    string
	}{
		"bias of another size": {"half.safetensors", map[string]any{"kind": "cnn", "input": []string{"1", "8", "8"}, "layers": digitLayers},
			"layer dense: its bias is [3], and its weight [10, 512]"},
		"not flat": {"digits.safetensors",
			map[string]any{"kind": "cnn", "input": []string{"1", "8", "8"}, "layers": []string{"conv1", "dense"}}, "flatten comes before a dense layer"},
		"conv in an mlp": {"digits.safetensors", map[string]any{"kind": "mlp", "input": []string{"1"}, "layers": []string{"conv1"}}, "layer conv1: its weight is"},
		"too small to pool": {"digits.safetensors", map[string]any{"kind": "cnn", "input": []string{"1", "1", "8"}, "layers": []string{"maxpool"}},
			"want [channels, height, width] of at least 2 x 2"},
		"no sizes": {"digits.safetensors", map[string]any{"kind": "cnn", "input": []string{"8", "8"}, "layers": digitLayers}, "wants layers, and input: [channels, height, width]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := driver.Do(t.Context(), importJob(t, dir, c.file, c.options), t.TempDir())
			if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want: %s", err, c.says)
			}
		})
	}
}
