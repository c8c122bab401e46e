package script_test

import (
	_ "embed"
	"encoding/json"
	"maps"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
)

//go:embed testdata/weights_check.py
var weightsCheck []byte

// Int4 weights are what they are said to be when ONNX Runtime multiplies with them, whatever
// their shape and whoever shares them, and half-quadratic quantization of weights with heavy
// tails is nearer to them than rounding to nearest.
func TestInt4Weights(t *testing.T) {
	t.Parallel()
	program, err := installed(t)()
	if err != nil {
		t.Fatal(err)
	}
	program.Code = maps.Clone(program.Code)
	program.Code["driver.py"] = weightsCheck
	driver := script.New(func() (script.Program, error) { return program, nil }, driverproc.Budget{})
	outcome, err := driver.Do(t.Context(), toolchain.Job{Verb: toolchain.VerbProbe}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var found map[string]map[string]struct {
		Count     int
		Cost, Off float64
	}
	if err := json.Unmarshal(outcome.Result, &found); err != nil {
		t.Fatal(err)
	}
	products := map[string]int{"shared": 2, "double": 0, "integers": 0} // of all others 1
	for model, ways := range found {
		want, ok := products[model]
		if !ok {
			want = 1
		}
		for way, f := range ways {
			if f.Count != want {
				t.Errorf("%s, %s: %d products have int4 weights, want %d", model, way, f.Count, want)
			}
			if tolerance := map[bool]float64{true: 2e-3, false: 1e-5}[model == "half precision"]; f.Off > tolerance {
				t.Errorf("%s, %s: the weights are off by %g of the largest, want at most %g", model, way, f.Off, tolerance)
			}
		}
		most := 0.99
		if model == "whole blocks" {
			most = 0.91 // zero points of the range, without a step of the solver, come to 0.93
		}
		for _, way := range []string{"hqq", "hqq qdq"} {
			if nearest := min(ways["rtn"].Cost, ways["rtn qdq"].Cost, ways["rtn asymmetric"].Cost); want > 0 && ways[way].Cost > most*nearest {
				t.Errorf("%s: mean |error|^0.7 is %.4f by %s, and %.4f rounded to nearest", model, ways[way].Cost, way, nearest)
			}
		}
	}
	if len(found) < 10 {
		t.Errorf("%d models", len(found))
	}
	t.Log(found)
}
