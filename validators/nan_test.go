package validators_test

import (
	"math"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// An engine has NaN and infinity where the reference has them, and nowhere else.
func TestJudgeNonFinite(t *testing.T) {
	t.Parallel()
	limits, err := validators.ExpandPreset("", digits(), []string{"fp32", "int8"}, 1, validators.LimitOverrides{})
	if err != nil {
		t.Fatal(err)
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, c := range map[string]struct {
		reference, engine float32
		code              string // of the first reason; empty for a pass
		says              string
	}{
		"both NaN":          {nan, nan, validators.ReasonNotEnough, "top1 is 100 % in 0 cases"}, // no row has a best class
		"both infinite":     {inf, inf, "", ""},
		"NaN in the engine": {1, nan, validators.ReasonNewNaN, "1 NaN where the reference has none"},
		"NaN in the engine, infinity in the reference": {inf, nan, validators.ReasonNewNaN, "1 NaN where the reference has none"},
		"infinity in the engine":                       {1, inf, validators.ReasonNewInf, "1 infinity where the reference has none"},
		"other infinity":                               {-inf, inf, validators.ReasonNewInf, "1 infinity"},
		"NaN in the reference":                         {nan, 1, validators.ReasonLimit, "in case 4 at [0 1]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, precision := range []string{"fp32", "int8"} {
				result := compared(t, []float32{0.25, c.reference, 3}, []float32{0.25, c.engine, 3})
				best := equalResult(1)
				verdict, reasons := judge(limits, precision, map[string]tensor.Result{"logits": result, "best": best}, nil, 1)
				if c.code == "" {
					if verdict != evidence.VerdictPass {
						t.Errorf("%s: verdict %s, reasons %v, want a pass", precision, verdict, reasons)
					}
					continue
				}
				want := evidence.VerdictFail
				if c.code == validators.ReasonNotEnough {
					want = evidence.VerdictUndecided
				}
				if verdict != want || reasons[0].Code != c.code || !strings.Contains(reasons[0].Message, c.says) {
					t.Errorf("%s: verdict %s, reasons %+v, want %s and %q", precision, verdict, reasons, c.code, c.says)
				}
			}
		})
	}
}

// compared compares one case, of number 4.
func compared(t *testing.T, reference, engine []float32) tensor.Result {
	t.Helper()
	want, errWant := tensor.New(reference, 1, int64(len(reference)))
	got, errGot := tensor.New(engine, 1, int64(len(engine)))
	c := tensor.NewComparison(tensor.Options{RTol: 0.0001, ATol: 0.00001})
	if errWant != nil || errGot != nil || c.Add(4, want, got) != nil {
		t.Fatal("the tensors cannot be compared")
	}
	return c.Result()
}
