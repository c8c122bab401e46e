package verify

import (
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Copies and cases with the golden outputs of another one must not hide a few other cases from the draw.
func TestDrawGolden(t *testing.T) {
	t.Parallel()
	const count, alike, copied = 2000, 1500, 300 // the others differ
	values := make([]float32, count)
	v := Session{Env: &run.Env{}}
	v.copies = make(map[int]bool)
	for i := range values {
		if i >= alike+copied {
			values[i] = float32(i)
		}
		if i >= alike && i < alike+copied {
			v.copies[i] = true
		}
	}
	const wanted = 64
	dir, file := rowsFile(t, values)
	set := artifact.CaseSet{Count: count, Shards: []artifact.Shard{{File: file, Count: count}}}
	v.Cases, v.Golden = run.Material{Dir: dir, Set: &set}, run.Material{Dir: dir, Set: &set}
	drawn, err := drawGolden(v, 0)
	if err != nil || len(drawn) != wanted {
		t.Fatalf("%d cases, error %v; want %d", len(drawn), err, wanted)
	}
	others, known := 0, make(map[int]bool)
	for _, number := range drawn {
		if v.copies[number] || known[number] {
			t.Errorf("case %d was drawn, a copy or twice", number)
		}
		known[number] = true
		if number >= alike {
			others++
		}
	}
	if others < len(drawn)-1 {
		t.Errorf("%d of %d drawn cases are those that differ, want all but one", others, len(drawn))
	}
}

// rowsFile writes values as the rows of an output, one for each case.
func rowsFile(t *testing.T, values []float32) (dir, name string) {
	t.Helper()
	dir, name = t.TempDir(), "a.safetensors"
	y, err := tensor.New(values, int64(len(values)), 1)
	if err == nil {
		err = cases.WriteShard(filepath.Join(dir, name), map[string]tensor.Tensor{"y": y})
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, name
}

// Few quantize nodes in a model of floats do not give it the tolerance of a quantized one.
func TestReferenceTolerance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ops  map[string]int
		want goldenset.Tolerance
	}{
		"floats":              {map[string]int{"ai.onnx.Conv": 4}, goldenset.Float32},
		"one quantize node":   {map[string]int{"ai.onnx.Conv": 4, "ai.onnx.QuantizeLinear": 1, "ai.onnx.DequantizeLinear": 1}, goldenset.Half},
		"all between nodes":   {map[string]int{"ai.onnx.Conv": 4, "ai.onnx.QuantizeLinear": 5, "ai.onnx.DequantizeLinear": 9}, goldenset.Quantized},
		"integers":            {map[string]int{"ai.onnx.QLinearConv": 4, "ai.onnx.Gemm": 1}, goldenset.Quantized},
		"nothing but rounded": {map[string]int{"ai.onnx.QuantizeLinear": 1}, goldenset.Quantized},
	} {
		if got := referenceTolerance(&onnx.Model{Ops: c.ops}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Golden outputs of another model fail an engine, and golden outputs that were not compared leave it undecided.
func TestJudgeGolden(t *testing.T) {
	t.Parallel()
	for _, golden := range []evidence.Verdict{evidence.VerdictPass, evidence.VerdictFail, evidence.VerdictUndecided} {
		var report evidence.ParityReport
		judgeGolden(evidence.Check{Trial: evidence.TrialGolden, Verdict: golden, Message: "why"}).Fold(&report.ReportHead)
		if report.Verdict != golden || len(report.Reasons) > 0 != (golden != evidence.VerdictPass) {
			t.Errorf("golden %q: verdict %s, reasons %v; want %s", golden, report.Verdict, report.Reasons, golden)
		}
	}
}
