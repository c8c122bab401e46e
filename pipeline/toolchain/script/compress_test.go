package script_test

import (
	_ "embed"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/registry"
)

//go:embed testdata/compress_check.py
var compressCheck []byte

// Removed channels that are zero change nothing, of every four weights two are zero, layers of low rank compute the same, and what
// cannot be compressed is refused by name: see the functions of the program.
func TestCompressedGraphs(t *testing.T) {
	t.Parallel()
	program, err := installed(t)()
	if err != nil {
		t.Fatal(err)
	}
	program.Code = maps.Clone(program.Code)
	program.Code["driver.py"] = compressCheck
	driver := script.New(func() (script.Program, error) { return program, nil }, driverproc.Budget{})
	outcome, err := driver.Do(t.Context(), toolchain.Job{Verb: toolchain.VerbProbe}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var found struct{ Failed map[string]string }
	if err := json.Unmarshal(outcome.Result, &found); err != nil {
		t.Fatal(err)
	}
	for check, failed := range found.Failed {
		if failed != "" {
			t.Errorf("%s: %s", check, failed)
		}
	}
	if len(found.Failed) != 11 {
		t.Errorf("%d checks, want 11", len(found.Failed))
	}
}

// compressing is a job that compresses a model.
func compressing(t *testing.T, model string, options map[string]any) toolchain.Job {
	t.Helper()
	job := withoutCalibration(t, model, options)
	job.Verb = toolchain.VerbCompress
	return job
}

// Every method gives the same bytes in two processes, keeps inputs and outputs, and says what it did.
func TestCompressMethods(t *testing.T) {
	t.Parallel()
	driver := script.New(installed(t), driverproc.Budget{})
	for name, c := range map[string]struct {
		model   string
		options map[string]any
		changed int
		smaller float64 // the share of the weights that is left at most
		zeros   int64   // at least
	}{
		"convolutions, 2:4":          {digits + "digits.onnx", map[string]any{"method": "prune", "pattern": "2:4"}, 2, 1, 4864},
		"encoder, 2:4":               {tickets, map[string]any{"method": "prune", "pattern": "2:4"}, 13, 1, 30000},
		"convolutions, unstructured": {digits + "digits.onnx", map[string]any{"method": "prune", "pattern": "unstructured", "amount": 0.9}, 3, 1, 8800},
		"convolutions, channels":     {digits + "digits.onnx", map[string]any{"method": "prune", "pattern": "channels", "amount": 0.5}, 2, 0.4, 0},
		"encoder, channels":          {tickets, map[string]any{"method": "prune", "pattern": "channels", "amount": 0.5}, 2, 0.85, 0},
		"encoder, low rank":          {tickets, map[string]any{"method": "low-rank", "rank": 8}, 12, 0.6, 0},
		"one layer":                  {tickets, map[string]any{"method": "low-rank", "rank": 8, "nodes": []string{"block0.dense1.product"}}, 1, 0.95, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := madeTwice(t, driver, compressing(t, c.model, c.options))
			keepsInterface(t, c.model, made, c.smaller)
			var said struct {
				Parameters, Zeros struct{ Before, After int64 }
				Changed           []struct{ Node string }
			}
			if err := json.Unmarshal(made.Result, &said); err != nil {
				t.Fatal(err)
			}
			if len(said.Changed) != c.changed || said.Zeros.After < c.zeros || said.Parameters.After > said.Parameters.Before {
				t.Errorf("%d layers changed, %+v, zeros %+v", len(said.Changed), said.Parameters, said.Zeros)
			}
		})
	}
}

// What cannot be compressed, or is asked for wrongly, is refused with a reason.
func TestCompressRefuses(t *testing.T) {
	t.Parallel()
	driver := script.New(installed(t), driverproc.Budget{})
	for name, c := range map[string]struct {
		options map[string]any
		want    string
	}{
		"no method":       {nil, "option method is missing"},
		"unknown method":  {map[string]any{"method": "distill"}, "want one of prune, low-rank"},
		"no pattern":      {map[string]any{"method": "prune"}, "option pattern is missing"},
		"unknown pattern": {map[string]any{"method": "prune", "pattern": "4:8"}, "want one of unstructured, 2:4, channels"},
		"amount of 2:4":   {map[string]any{"method": "prune", "pattern": "2:4", "amount": 0.5}, "always makes two of four zero"},
		"no amount":       {map[string]any{"method": "prune", "pattern": "channels"}, "option amount is 0.0: want more than 0 and less than 1"},
		"all":             {map[string]any{"method": "prune", "pattern": "channels", "amount": 1.0}, "want more than 0 and less than 1"},
		"no rank":         {map[string]any{"method": "low-rank"}, "want a rank of at least 1, or an energy"},
		"both":            {map[string]any{"method": "low-rank", "rank": 2, "energy": 0.5}, "want a rank of at least 1, or an energy"},
		"negative rank":   {map[string]any{"method": "low-rank", "rank": -2}, "want a rank of at least 1, or an energy"},
		"too much energy": {map[string]any{"method": "low-rank", "energy": 1.5}, "want a rank of at least 1, or an energy"},
		"amount of rank":  {map[string]any{"method": "low-rank", "rank": 2, "amount": 0.5}, "option amount means nothing to method low-rank"},
		"unknown option":  {map[string]any{"method": "prune", "pattern": "2:4", "seed": 1}, "option 'seed'"},
		"unknown node":    {map[string]any{"method": "prune", "pattern": "2:4", "nodes": []string{"conv9"}}, "the model has no node 'conv9'"},
		"weightless node": {map[string]any{"method": "prune", "pattern": "2:4", "nodes": []string{"relu1"}}, "'relu1' has no constant weights"},
		"the last layer":  {map[string]any{"method": "prune", "pattern": "channels", "amount": 0.5, "nodes": []string{"dense"}}, "its channels are the output 'logits' of the model"},
		"one channel":     {map[string]any{"method": "prune", "pattern": "2:4", "nodes": []string{"conv1"}}, "1 weights are summed, which is no multiple of 4"},
		"large kernels":   {map[string]any{"method": "low-rank", "rank": 1, "nodes": []string{"conv2"}}, "its kernel is larger than 1x1"},
		"nothing left":    {map[string]any{"method": "prune", "pattern": "2:4", "exclude": []string{"conv1", "conv2", "dense"}}, "no layer of the model can be compressed so: none has constant weights"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := driver.Do(t.Context(), compressing(t, digits+"digits.onnx", c.options), t.TempDir())
			if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want CodeInvalid with %q", err, c.want)
			}
		})
	}
}
