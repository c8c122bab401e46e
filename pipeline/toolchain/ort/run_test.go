//go:build cgo

package ort_test

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

func floats(shape []int64, values ...float32) tensor.Tensor {
	t := tensor.Tensor{DType: tensor.Float32, Shape: shape}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
	}
	return t
}

func ints(shape []int64, values ...int64) tensor.Tensor {
	t := tensor.Tensor{DType: tensor.Int64, Shape: shape}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint64(t.Data, uint64(v))
	}
	return t
}

func read(t *testing.T, outcome toolchain.Outcome, name string) map[string]tensor.Tensor {
	t.Helper()
	file, ok := outcome.File(name)
	if !ok {
		t.Fatalf("no output %s among %v", name, outcome.Files)
	}
	tensors, err := tensorfile.ReadFile(file.Path, tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return tensors
}

func wantTensor(t *testing.T, name string, got, want tensor.Tensor) {
	t.Helper()
	if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) || !slices.Equal(got.Data, want.Data) {
		t.Errorf("%s:\n got %s %v %x\nwant %s %v %x", name, got.DType, got.Shape, got.Data, want.DType, want.Shape, want.Data)
	}
}

// Inputs without a batch dimension lose the case dimension, scalars included, and
// outputs get one; shards keep their names and counts.
func TestRunUnbatched(t *testing.T) {
	t.Parallel()
	a := write(t, "a.safetensors", map[string]tensor.Tensor{
		"x": floats([]int64{2, 3}, 1, 2, 3, 4, 5, 6), "n": ints([]int64{2}, 2, 10), "label": ints([]int64{7}, 0, 0, 0, 0, 0, 0, 0),
	})
	b := write(t, "b.safetensors", map[string]tensor.Tensor{"x": floats([]int64{1, 3}, 1, 1, 1), "n": ints([]int64{1}, 3)})
	job := runJob(t, "unbatched.onnx", b, a)
	outcome, err := newDriver(t).Do(t.Context(), job, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first := read(t, outcome, "outputs/m/a.safetensors")
	wantTensor(t, "scaled", first["scaled"], floats([]int64{2, 3}, 2, 4, 6, 40, 50, 60))
	wantTensor(t, "sum", first["sum"], floats([]int64{2}, 12, 150))
	wantTensor(t, "sum of b", read(t, outcome, "outputs/m/b.safetensors")["sum"], floats([]int64{1}, 9))
	result, err := outcome.RunResult(*job.Run)
	if err != nil {
		t.Fatal(err)
	}
	if result.Cases != 3 || len(result.Engines) != 1 || len(result.Engines[0].TimingsNS) != 3 || result.Engines[0].PeakRSS == 0 {
		t.Errorf("result %+v, want 3 cases and as many timings", result)
	}
}

// Inputs with a batch dimension run as batches of one, and outputs are stacked back.
// float16 and bool have no Go type that the binding could read back by itself.
func TestRunBatched(t *testing.T) {
	t.Parallel()
	half := tensor.Tensor{DType: tensor.Float16, Shape: []int64{3, 2}, Data: []byte{0, 0x3c, 0, 0x40, 0, 0x3c, 0, 0x40, 0, 0x3c, 0, 0x40}}
	twice := tensor.Tensor{DType: tensor.Float16, Shape: []int64{3, 2}, Data: []byte{0, 0x40, 0, 0x44, 0, 0x40, 0, 0x44, 0, 0x40, 0, 0x44}}
	shard := write(t, "s.safetensors", map[string]tensor.Tensor{"h": half, "b": {DType: tensor.Bool, Shape: []int64{3}, Data: []byte{0, 1, 0}}})
	outcome, err := newDriver(t).Do(t.Context(), runJob(t, "half.onnx", shard), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, outcome, "outputs/m/s.safetensors")
	wantTensor(t, "twice", got["twice"], twice)
	wantTensor(t, "not", got["not"], tensor.Tensor{DType: tensor.Bool, Shape: []int64{3}, Data: []byte{1, 0, 1}})
}

// A case may be a whole batch: outputs that the binding cannot read by itself are as long as the inputs.
func TestRunBatchesAsCases(t *testing.T) {
	t.Parallel()
	h := tensor.Tensor{DType: tensor.Float16, Shape: []int64{1, 3, 2}, Data: []byte{0, 0x3c, 0, 0x40, 0, 0x40, 0, 0x3c, 0, 0x3c, 0, 0x40}}
	twice := tensor.Tensor{DType: tensor.Float16, Shape: []int64{1, 3, 2}, Data: []byte{0, 0x40, 0, 0x44, 0, 0x44, 0, 0x40, 0, 0x40, 0, 0x44}}
	shard := write(t, "s.safetensors", map[string]tensor.Tensor{"h": h, "b": {DType: tensor.Bool, Shape: []int64{1, 3}, Data: []byte{0, 1, 0}}})
	outcome, err := newDriver(t).Do(t.Context(), runJob(t, "half.onnx", shard), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, outcome, "outputs/m/s.safetensors")
	wantTensor(t, "twice", got["twice"], twice)
	wantTensor(t, "not", got["not"], tensor.Tensor{DType: tensor.Bool, Shape: []int64{1, 3}, Data: []byte{1, 0, 1}})

	shard = write(t, "o.safetensors", map[string]tensor.Tensor{"h": h, "b": {DType: tensor.Bool, Shape: []int64{1, 2}, Data: []byte{0, 1}}})
	_, err = newDriver(t).Do(t.Context(), runJob(t, "half.onnx", shard), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "with an open dimension") {
		t.Errorf("%v, want a refusal of batches of two sizes", err)
	}
}

// Two engines over rounds: as many timings each, and the same outputs in any order.
func TestRunOrders(t *testing.T) {
	t.Parallel()
	driver := newDriver(t)
	source := toolchaintest.Input(t, toolchain.RoleModel, "source/digits.onnx", digits+"digits.onnx")
	compiled, err := driver.Do(t.Context(), toolchain.Job{Verb: toolchain.VerbCompile, Inputs: []toolchain.Input{source}}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	engine := toolchaintest.Input(t, toolchain.RoleModel, "engine/model.onnx", compiled.Files[0].Path)
	cases := toolchaintest.Input(t, toolchain.RoleCases, "cases-00000.safetensors", digits+"cases/cases-00000.safetensors")
	var digests []registry.Digest
	for _, order := range []toolchain.Order{toolchain.OrderSequential, toolchain.OrderInterleaved} {
		job := toolchain.Job{Verb: toolchain.VerbRun, Inputs: []toolchain.Input{source, engine, cases}, Run: &toolchain.RunOptions{
			Engines: []toolchain.RunEngine{{ID: "reference", Path: source.Name}, {ID: "engine", Path: engine.Name}},
			Rounds:  3, Warmup: 20, Order: order, SelectOutputs: []string{"logits"},
		}}
		outcome, err := driver.Do(t.Context(), job, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		result, err := outcome.RunResult(*job.Run)
		if err != nil {
			t.Fatal(err)
		}
		if result.Cases != 360 || len(result.Engines) != 2 {
			t.Fatalf("%s: %d cases, %d engines, want 360 and 2", order, result.Cases, len(result.Engines))
		}
		for i, e := range result.Engines {
			if e.ID != job.Run.Engines[i].ID || len(e.TimingsNS) != 3*360 || e.LoadNS <= 0 || slices.Min(e.TimingsNS) <= 0 {
				t.Errorf("%s: engine %s: %d timings, load %d ns", order, e.ID, len(e.TimingsNS), e.LoadNS)
			}
			t.Logf("%s: engine %s: load %d us, median %d ns", order, e.ID, e.LoadNS/1000, slices.Sorted(slices.Values(e.TimingsNS))[540])
		}
		for _, f := range outcome.Files {
			digests = append(digests, f.Digest)
		}
		if right := right(t, outcome, "reference"); right != 356 {
			t.Errorf("%d of 360 right, want 356", right)
		}
	}
	if len(digests) != 4 || digests[0] != digests[2] || digests[1] != digests[3] {
		t.Errorf("outputs depend on the order: %v", digests)
	}
}

// The example in int8: quantized by one driver, compiled and run by the other, it
// computes something else and still reads nearly all digits.
func TestInt8(t *testing.T) {
	t.Parallel()
	installer := toolchaintest.Installer(t, ort.Name)
	engines, quantizer := newDriver(t), script.New(script.Installed(installer, ort.Name), driverproc.Budget{})
	source := toolchaintest.Input(t, toolchain.RoleModel, "source.onnx", digits+"digits.onnx")
	calibration := toolchaintest.Input(t, toolchain.RoleCalibration, "c.safetensors", digits+"calibration/calibration-00000.safetensors")
	cases := toolchaintest.Input(t, toolchain.RoleCases, "cases-00000.safetensors", digits+"cases/cases-00000.safetensors")
	step := func(driver toolchain.Driver, name string, job toolchain.Job) toolchain.Input {
		outcome, err := driver.Do(t.Context(), job, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		file, _ := outcome.File("model.onnx")
		return toolchaintest.Input(t, toolchain.RoleModel, name, file.Path)
	}
	quantized := step(quantizer, "int8.onnx", toolchain.Job{Verb: toolchain.VerbQuantize, Inputs: []toolchain.Input{source, calibration}})
	engine := step(engines, "engine.onnx", toolchain.Job{Verb: toolchain.VerbCompile, Inputs: []toolchain.Input{quantized}})
	outcome, err := engines.Do(t.Context(),
		toolchain.Job{Verb: toolchain.VerbRun, Inputs: []toolchain.Input{source, engine, cases}, Run: &toolchain.RunOptions{
			Engines: []toolchain.RunEngine{{ID: "reference", Path: "source.onnx"}, {ID: "int8", Path: "engine.onnx"}},
		}}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if right := right(t, outcome, "int8"); right < 350 {
		t.Errorf("%d of 360 right, want at least 350", right)
	}
	if outcome.Files[0].Digest == outcome.Files[1].Digest {
		t.Error("int8 computes exactly what the reference computes")
	}
}

// right counts the outputs of an engine whose largest logit is the label.
func right(t *testing.T, outcome toolchain.Outcome, id string) int {
	t.Helper()
	logits := read(t, outcome, "outputs/"+id+"/cases-00000.safetensors")["logits"]
	cases, err := tensorfile.ReadFile(digits+"cases/cases-00000.safetensors", tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for i := range 360 {
		best, at := float32(math.Inf(-1)), 0
		for j := range 10 {
			if v := math.Float32frombits(binary.LittleEndian.Uint32(logits.Data[40*i+4*j:])); v > best {
				best, at = v, j
			}
		}
		if binary.LittleEndian.Uint64(cases["label"].Data[8*i:]) == uint64(at) {
			right++
		}
	}
	return right
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	driver := newDriver(t)
	x, n := floats([]int64{1, 3}, 1, 2, 3), ints([]int64{1}, 1)
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("not a tensor in sight"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		model string
		cases map[string]tensor.Tensor
		edit  func(*toolchain.Job)
		want  string
	}{
		"no cases":       {want: "no cases", edit: func(j *toolchain.Job) { j.Inputs = j.Inputs[:1] }},
		"missing input":  {cases: map[string]tensor.Tensor{"x": x}, want: "input n"},
		"wrong dtype":    {cases: map[string]tensor.Tensor{"x": x, "n": x}, want: `tensor "n" is float32`},
		"wrong shape":    {cases: map[string]tensor.Tensor{"x": floats([]int64{1, 2}, 1, 2), "n": n}, want: `tensor "x" is float32 [1 2]`},
		"wrong counts":   {cases: map[string]tensor.Tensor{"x": x, "n": ints([]int64{2}, 1, 2)}, want: "2 cases"},
		"empty":          {cases: map[string]tensor.Tensor{"x": floats([]int64{0, 3}), "n": ints([]int64{0})}, want: "it has no cases"},
		"unknown output": {cases: map[string]tensor.Tensor{"x": x, "n": n}, want: "scaled, sum", edit: func(j *toolchain.Job) { j.Run.SelectOutputs = []string{"total"} }},
		"unknown level":  {cases: map[string]tensor.Tensor{"x": x, "n": n}, want: "fastest", edit: func(j *toolchain.Job) { j.Run.Level = "fastest" }},
		"too many rounds": {cases: map[string]tensor.Tensor{"x": floats([]int64{5, 3}, make([]float32, 15)...), "n": ints([]int64{5}, 1, 1, 1, 1, 1)},
			want: "at most 4000000", edit: func(j *toolchain.Job) { j.Run.Rounds = 900_000 }},
		"ragged": {model: "ragged.onnx", cases: map[string]tensor.Tensor{"x": floats([]int64{2, 4}, 1, 0, 0, 0, 1, 1, 0, 0)}, want: "different shapes"},
		"garbage": {want: "safetensors", edit: func(j *toolchain.Job) {
			j.Inputs[1] = toolchaintest.Input(t, toolchain.RoleCases, "g", garbage)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.model == "" {
				c.model = "unbatched.onnx"
			}
			if c.cases == nil {
				c.cases = map[string]tensor.Tensor{"x": x, "n": n}
			}
			job := runJob(t, c.model, write(t, "s.safetensors", c.cases))
			if c.edit != nil {
				c.edit(&job)
			}
			_, err := driver.Do(t.Context(), job, t.TempDir())
			wantCode(t, err, registry.CodeInvalid)
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
		})
	}
}

// A case that the model cannot take is named, with the input that holds the index.
func TestRunNamesTheCase(t *testing.T) {
	t.Parallel()
	ids := []int64{1, 2, 3, 4, 1, 2, 3, 473}
	ones := []int64{1, 1, 1, 1, 1, 1, 1, 1}
	good := write(t, "a.safetensors", map[string]tensor.Tensor{
		"input_ids": ints([]int64{1, 4}, ids[:4]...), "attention_mask": ints([]int64{1, 4}, ones[:4]...)})
	bad := write(t, "b.safetensors", map[string]tensor.Tensor{
		"input_ids": ints([]int64{2, 4}, ids...), "attention_mask": ints([]int64{2, 4}, ones...)})
	model := toolchaintest.Input(t, toolchain.RoleModel, "tickets.onnx", text+"tickets.onnx")
	job := toolchain.Job{Verb: toolchain.VerbRun, Inputs: []toolchain.Input{model, good, bad},
		Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "m", Path: "tickets.onnx"}}}}
	_, err := newDriver(t).Do(t.Context(), job, t.TempDir())
	wantCode(t, err, registry.CodeInvalid)
	if want := `engine m: case 2 (row 1 of b.safetensors): input "input_ids" holds 473, which is out of range: `; !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not say %q", err, want)
	}
	var failed *toolchain.Failure
	if !errors.As(err, &failed) || failed.Engine != "m" || failed.Shard != "b.safetensors" || failed.Row != 1 || failed.Case == nil || *failed.Case != 2 {
		t.Errorf("the failure is about %+v, want row 1 of b.safetensors, case 2, of engine m", failed)
	}
}

// The library has no codes: what it does not compute in float16 is read from its text here, and nowhere else.
func TestRunNamesOperatorsWithoutFloat16(t *testing.T) {
	t.Parallel()
	const text = "Error running network: Non-zero status code returned while running Mul node. Name:'Mul_0' Status Message: MLFloat16 data type is not supported with Mul opset 16"
	var failed *driverproc.Error
	if err := ort.InCase(text); !errors.As(err, &failed) || failed.Code != driverproc.UnsupportedOp || failed.Op != "Mul" || failed.DType != "float16" ||
		failed.Engine != "m" || failed.Shard != "b.safetensors" || failed.Row != 1 || *failed.Case != 3 {
		t.Errorf("error %v about %+v, want the operator Mul in float16, in case 3", err, failed)
	}
	if err := ort.InCase("Non-zero status code returned while running Mul node. Name:'Mul_0'"); !errors.As(err, &failed) ||
		failed.Code != driverproc.ToolFailed || failed.Op != "" || failed.DType != "" {
		t.Errorf("error %v about %+v, want no operator", err, failed)
	}
}
