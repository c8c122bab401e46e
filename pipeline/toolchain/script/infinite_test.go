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

//go:embed testdata/infinite_check.py
var infiniteCheck []byte

// A constant that is infinite, as the start of a maximum, is left out of quantization, and the rest is quantized.
func TestInfiniteConstants(t *testing.T) {
	t.Parallel()
	program, err := installed(t)()
	if err != nil {
		t.Fatal(err)
	}
	program.Code = maps.Clone(program.Code)
	program.Code["driver.py"], program.Code["quantizing.py"] = infiniteCheck, program.Code["driver.py"]
	driver := script.New(func() (script.Program, error) { return program, nil }, driverproc.Budget{})
	outcome, err := driver.Do(t.Context(), toolchain.Job{Verb: toolchain.VerbProbe}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		SNR      float64
		Same     bool
		Infinite []string
	}
	if err := json.Unmarshal(outcome.Result, &found); err != nil {
		t.Fatal(err)
	}
	if found.SNR < 20 || !found.Same || len(found.Infinite) > 0 {
		t.Errorf("%+v, want at least 20 dB, the same model from the ranges, and these finite", found)
	}
	t.Log(found)
}
