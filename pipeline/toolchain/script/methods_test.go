package script_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

const tickets = "../../../examples/text/tickets.onnx"

// withoutCalibration is a job of a method that needs none.
func withoutCalibration(t *testing.T, model string, options map[string]any) toolchain.Job {
	t.Helper()
	return toolchain.Job{Verb: toolchain.VerbQuantize, Options: options, Inputs: []toolchain.Input{
		toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", model)}}
}

// madeTwice does a job in two processes, which are to make the same model, and returns what one of them made.
func madeTwice(t *testing.T, driver toolchain.Driver, job toolchain.Job) toolchain.Outcome {
	t.Helper()
	var digests []registry.Digest
	var made toolchain.Outcome
	for range 2 {
		outcome, err := driver.Do(t.Context(), job, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		file, ok := outcome.File("model.onnx")
		if !ok || len(outcome.Files) != 1 {
			t.Fatalf("files %v", outcome.Files)
		}
		digests, made = append(digests, file.Digest), outcome
	}
	if digests[0] != digests[1] {
		t.Errorf("two processes made %s and %s", digests[0], digests[1])
	}
	return made
}

// keepsInterface wants a model with the inputs and outputs of its source and at most a share of its weights. It returns both.
func keepsInterface(t *testing.T, from string, made toolchain.Outcome, smaller float64) (source, model *onnx.Model) {
	t.Helper()
	file, _ := made.File("model.onnx")
	source, model = open(t, from), open(t, file.Path)
	if diff := cmp.Diff([][]onnx.Value{source.Inputs, source.Outputs}, [][]onnx.Value{model.Inputs, model.Outputs}); diff != "" {
		t.Error("another interface", diff)
	}
	if share := float64(model.InitializerBytes) / float64(source.InitializerBytes); share > smaller {
		t.Errorf("%.2f of the weights are left, want at most %.2f", share, smaller)
	}
	return source, model
}

func open(t *testing.T, path string) *onnx.Model {
	t.Helper()
	model, err := format.OpenONNX(path, bound.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// Every method gives the same bytes in two processes, keeps inputs and outputs, makes
// the weights smaller, and does what it is for.
func TestMethodsWithoutCalibration(t *testing.T) {
	t.Parallel()
	driver := script.New(installed(t), driverproc.Budget{})
	for name, c := range map[string]struct {
		model   string
		options map[string]any
		has     string  // an operator of the result
		smaller float64 // the share of the weights that is left at most
	}{
		"dynamic encoder":      {tickets, map[string]any{"method": "dynamic-int8"}, "ai.onnx.MatMulInteger", 0.3},
		"dynamic per channel":  {tickets, map[string]any{"method": "dynamic-int8", "per_channel": true}, "ai.onnx.MatMulInteger", 0.4},
		"dynamic 7 bits":       {tickets, map[string]any{"method": "dynamic-int8", "reduce_range": true}, "ai.onnx.MatMulInteger", 0.3},
		"weights with shapes":  {"testdata/declared.onnx", map[string]any{"method": "dynamic-int8"}, "ai.onnx.MatMulInteger", 0.4}, // as torch.onnx writes them
		"dynamic convolutions": {digits + "digits.onnx", map[string]any{"method": "dynamic-int8"}, "ai.onnx.ConvInteger", 0.3},
		"int4 weights":         {tickets, map[string]any{"method": "weights-int4", "format": "qoperator"}, "com.microsoft.MatMulNBits", 0.85},
		"int4 weights, qdq":    {tickets, map[string]any{"method": "weights-int4", "format": "qdq", "symmetric": false}, "ai.onnx.DequantizeLinear", 0.85},
		"int4 weights by hqq":  {tickets, map[string]any{"method": "weights-int4", "algorithm": "hqq", "format": "qoperator"}, "com.microsoft.MatMulNBits", 0.85},
		"int4 by hqq, qdq":     {tickets, map[string]any{"method": "weights-int4", "algorithm": "hqq", "block_size": 16}, "ai.onnx.DequantizeLinear", 0.85},
		"fp16 encoder":         {tickets, map[string]any{"method": "fp16"}, "ai.onnx.Cast", 0.51},
		"fp16 convolutions":    {digits + "digits.onnx", map[string]any{"method": "fp16"}, "ai.onnx.Cast", 0.51},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := madeTwice(t, driver, withoutCalibration(t, c.model, c.options))
			source, model := keepsInterface(t, c.model, made, c.smaller)
			if model.Ops[c.has] <= source.Ops[c.has] {
				t.Errorf("operators %v: want more of %s than the source's %d", model.Ops, c.has, source.Ops[c.has])
			}
			if domains := model.CustomDomains(); len(domains) > 0 {
				t.Errorf("custom operators of %v", domains)
			}
		})
	}
}

// The result repeats the options that decided, and none that has no meaning there.
func TestMethodTellsItsOptions(t *testing.T) {
	t.Parallel()
	driver := script.New(installed(t), driverproc.Budget{})
	outcome, err := driver.Do(t.Context(), withoutCalibration(t, tickets, map[string]any{"method": "fp16"}), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Halved  int
		Options map[string]any
	}
	if err := json.Unmarshal(outcome.Result, &result); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"method": "fp16", "exclude_nodes": []any{}, "rtol": 0., "atol": 0.}, result.Options); diff != "" ||
		result.Halved < 10 {
		t.Errorf("result %+v %s", result, diff)
	}
}

// Nodes that are left out stay in float32.
func TestHalfPrecisionLeavesNodesOut(t *testing.T) {
	t.Parallel()
	driver := script.New(installed(t), driverproc.Budget{})
	sizes := make([]int64, 0, 2)
	for _, left := range [][]string{{}, {"words"}} {
		outcome, err := driver.Do(t.Context(), withoutCalibration(t, tickets, map[string]any{"method": "fp16", "exclude_nodes": left}), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		file, _ := outcome.File("model.onnx")
		sizes = append(sizes, open(t, file.Path).InitializerBytes)
	}
	if !slices.IsSorted(sizes) || sizes[1]-sizes[0] < 50_000 {
		t.Errorf("initializers of %v bytes: want those of the embedding twice as large in the second", sizes)
	}
}

// testdata/blocked.onnx is y = max(xw, c) + min(xw, c) for x [n, 2]. Max and Min stay
// in float32 and read the same number, which is converted once.
func TestHalfPrecisionConvertsOnce(t *testing.T) {
	t.Parallel()
	driver := script.New(installed(t), driverproc.Budget{})
	outcome, err := driver.Do(t.Context(), withoutCalibration(t, "testdata/blocked.onnx", map[string]any{"method": "fp16"}), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, _ := outcome.File("model.onnx")
	want := map[string]int{"ai.onnx.Cast": 5, "ai.onnx.MatMul": 1, "ai.onnx.Max": 1, "ai.onnx.Min": 1, "ai.onnx.Add": 1}
	if diff := cmp.Diff(want, open(t, file.Path).Ops); diff != "" {
		t.Error(diff)
	}
}

func TestMethodsRefuse(t *testing.T) {
	t.Parallel()
	driver := script.New(installed(t), driverproc.Budget{})
	for name, c := range map[string]struct {
		options map[string]any
		want    string
	}{
		"observer of dynamic": {map[string]any{"method": "dynamic-int8", "observer": "minmax"}, "option observer means nothing to method dynamic-int8"},
		"range of fp16":       {map[string]any{"method": "fp16", "reduce_range": true}, "option reduce_range means nothing to method fp16"},
		"method":              {map[string]any{"method": "fp8"}, "static-int8, dynamic-int8, weights-int4, fp16"},
		"symmetric hqq":       {map[string]any{"method": "weights-int4", "algorithm": "hqq", "symmetric": true}, "algorithm hqq always has zero points"},
		"algorithm of fp16":   {map[string]any{"method": "fp16", "algorithm": "hqq"}, "option algorithm means nothing to method fp16"},
		"no time":             {map[string]any{"method": "dynamic-int8", "sensitivity": -1}, "option sensitivity is -1.0: want no less than 0"},
		"no such node, int4":  {map[string]any{"method": "weights-int4", "exclude_nodes": []string{"logit"}}, "exclude: the model has no node 'logit'"},
		"no such node, int8":  {map[string]any{"method": "dynamic-int8", "exclude_nodes": []string{"logit"}}, "exclude: the model has no node 'logit'"},
		"no such node, fp16":  {map[string]any{"method": "fp16", "exclude_nodes": []string{"logit"}}, "exclude: the model has no node 'logit'"},
		"nothing to do":       {map[string]any{"method": "dynamic-int8", "op_types": []string{"Softmax"}}, "no operator"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := driver.Do(t.Context(), withoutCalibration(t, tickets, c.options), t.TempDir())
			if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want CodeInvalid and %q", err, c.want)
			}
		})
	}
}
