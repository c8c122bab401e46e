package script_test

import (
	_ "embed"
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
)

//go:embed testdata/gemms_check.py
var gemmsCheck []byte

// Products that torch.onnx writes as Gemm are quantized, and left out by their names and by their type.
func TestGemms(t *testing.T) {
	t.Parallel()
	program, err := installed(t)()
	if err != nil {
		t.Fatal(err)
	}
	program.Code = maps.Clone(program.Code)
	program.Code["driver.py"], program.Code["quantizing.py"] = gemmsCheck, program.Code["driver.py"]
	driver := script.New(func() (script.Program, error) { return program, nil }, driverproc.Budget{})
	outcome, err := driver.Do(t.Context(), toolchain.Job{Verb: toolchain.VerbProbe}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var found map[string]struct {
		Left []string
		SNR  float64
	}
	if err := json.Unmarshal(outcome.Result, &found); err != nil {
		t.Fatal(err)
	}
	for way, want := range map[string][]string{
		// ONNX Runtime quantizes nothing within an If there.
		"dynamic":           {"factor", "no", "yes"},
		"dynamic but three": {"factor", "first", "no", "third", "yes"},
		"dynamic Gemm":      {"factor", "no", "product", "yes"},
		"dynamic MatMul":    {"factor", "first", "no", "second", "third", "yes"},
		"int4":              {"factor"},
		"int4 but three":    {"factor", "first", "third", "yes"},
	} {
		if diff := cmp.Diff(want, found[way].Left); diff != "" {
			t.Errorf("%s: products of floats %s", way, diff)
		}
		least := map[bool]float64{true: 30, false: 12}[way[0] == 'd']
		if found[way].SNR < least {
			t.Errorf("%s: %.1f dB, want at least %g", way, found[way].SNR, least)
		}
	}
	t.Log(found)
}
