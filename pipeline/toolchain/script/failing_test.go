package script_test

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// What a tool throws gets the step, the node if the tool was at one, and a remedy. What a driver refuses has its own words.
func TestFailuresNameTheStep(t *testing.T) {
	t.Parallel()
	program, model := failing(t), modelFile(t)
	for verb, c := range map[toolchain.Verb]struct {
		code registry.Code
		want string
	}{
		toolchain.VerbQuantize: {registry.CodeInternal, "failing: quantize failed at node 'conv1' (Conv): ValueError: no scale for an empty range; " +
			"leave nodes in full precision (exclude), or take another method or tool, or report this to the makers of the tool"},
		toolchain.VerbCompile: {registry.CodeInvalid, "failing: compile failed: KeyError: 'shape'; " +
			"take another variant or another toolchain for this target, or report this to the makers of the tool"},
		toolchain.VerbCompress: {registry.CodeInvalid, "failing: nothing to prune"},
	} {
		job := toolchain.Job{Verb: verb, Inputs: []toolchain.Input{toolchaintest.Input(t, toolchain.RoleModel, "model.bin", model)}}
		if _, err := driverproc.Do(t.Context(), program, driverproc.Budget{}, job, t.TempDir()); !registry.HasCode(err, c.code) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", verb, err, c.want)
		}
	}
}

// failing is the driver of testdata/failing.py.
func failing(t *testing.T) driverproc.Program {
	t.Helper()
	record, err := toolchaintest.Installed(t, "onnxruntime").Find("onnxruntime")
	if err != nil {
		t.Fatal(err)
	}
	python, testdata, common := record.Interpreter(), absolute(t, "testdata"), absolute(t, "../drivers/common")
	return driverproc.Program{Name: "failing", Path: python, Reads: append(record.Folders(), testdata, common),
		Args: []string{python, "-s", "-P", "-B", filepath.Join(testdata, "failing.py"), common}}
}

// modelFile writes a file that stands for a model.
func modelFile(t *testing.T) string {
	t.Helper()
	model := filepath.Join(t.TempDir(), "model.bin")
	if err := os.WriteFile(model, []byte("model"), 0o600); err != nil {
		t.Fatal(err)
	}
	return model
}

// Whatever an engine throws, the error names engine, shard and case in fields; what a driver knows besides stays.
func TestFailuresNameTheCase(t *testing.T) {
	t.Parallel()
	program, model := failing(t), modelFile(t)
	write := func(name string, values []float32, shape ...int64) toolchain.Input {
		x := tensor.Tensor{DType: tensor.Float32, Shape: shape}
		for _, v := range values {
			x.Data = binary.LittleEndian.AppendUint32(x.Data, math.Float32bits(v))
		}
		path := filepath.Join(t.TempDir(), name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(tensorfile.Write(f, map[string]tensor.Tensor{"x": x}, nil), f.Close()); err != nil {
			t.Fatal(err)
		}
		return toolchaintest.Input(t, toolchain.RoleCases, name, path)
	}
	for name, c := range map[string]struct {
		second toolchain.Input
		code   registry.Code
		want   string
		about  toolchain.Subject
	}{
		"an exception": {write("b.safetensors", []float32{3, 4}, 2, 1), registry.CodeInternal,
			"failing: engine m: case 3 (row 1 of b.safetensors): ValueError: no value for 4",
			toolchain.Subject{Engine: "m", Shard: "b.safetensors", Row: 1, Case: new(3)}},
		"an operator": {write("b.safetensors", []float32{5, 4}, 2, 1), registry.CodeInvalid,
			"failing: engine m: case 2 (row 0 of b.safetensors): Mul: no kernel",
			toolchain.Subject{Engine: "m", Shard: "b.safetensors", Case: new(2), Op: "Mul", DType: "float16"}},
		"another shape": {write("b.safetensors", []float32{3, 4}, 1, 2), registry.CodeInvalid,
			"failing: b.safetensors: tensor 'x' is float32 [1, 2]: the model's input wants float32 [1] for each case",
			toolchain.Subject{Shard: "b.safetensors"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := toolchain.Job{Verb: toolchain.VerbRun,
				Inputs: []toolchain.Input{toolchaintest.Input(t, toolchain.RoleModel, "model.bin", model), write("a.safetensors", []float32{1, 2}, 2, 1), c.second},
				Run:    &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "m", Path: "model.bin"}}}}
			_, err := driverproc.Do(t.Context(), program, driverproc.Budget{}, job, t.TempDir())
			var failed *toolchain.Failure
			if !registry.HasCode(err, c.code) || !errors.As(err, &failed) || err.Error() != c.want {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			got, want := failed.Subject, c.about
			if (got.Case == nil) != (want.Case == nil) || got.Case != nil && *got.Case != *want.Case {
				t.Errorf("case %v, want %v", got.Case, want.Case)
			}
			if got.Case, want.Case = nil, nil; got != want {
				t.Errorf("the failure is about %+v, want %+v", got, want)
			}
		})
	}
}
