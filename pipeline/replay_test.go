//go:build cgo

package pipeline_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/diagnose"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// A replayed case shows what goes in and comes out, the element that differs most, and what the report says of its worst
// element, if that is in this case.
func TestReplay(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.25) // int8 multiplies by that, and the model by 1.5
	built := w.built(t, digits, build.Options{})
	verified, _ := verify.Verify(t.Context(), w.p, built.Ref) // int8 fails its limits
	report := verified.Engines[1].Parity
	worst := report.Outputs["y"].Worst
	if worst == nil || worst.Case != 2 {
		t.Fatalf("the worst element is %+v, want that of case 2, which is the largest", worst)
	}
	if report.Outputs["y"].Prefix != nil {
		t.Error("an output that is no tokens has a common prefix of them")
	}
	overAll := func(c evidence.Check) bool { return c.Low != nil || c.High != nil || c.Figure == "systematic" }
	if !slices.ContainsFunc(report.Checks, overAll) {
		t.Fatalf("checks %+v, want one that takes all cases", report.Checks)
	}
	for number, x := range []float64{1, -2, 3} {
		found, err := diagnose.Replay(t.Context(), w.p, built.Ref, diagnose.ReplayOptions{Engine: "int8", Case: number, Report: &report})
		if err != nil {
			t.Fatal(err)
		}
		y := found.Outputs[0]
		if found.Case == nil || *found.Case != number || float64(found.Inputs[0].Mean) != x || float64(y.Reference.Mean) != 1.5*x || float64(y.Engine.Mean) != 1.25*x {
			t.Errorf("case %d: inputs %+v, output %+v, want those of x = %v", number, found.Inputs, y, x)
		}
		if float64(y.MaxAbs) != 0.25*math.Abs(x) || y.Worst == nil || float64(y.Worst.Engine) != 1.25*x || len(y.Checks) == 0 {
			t.Errorf("case %d: output %+v, want a largest difference of %v and the limits", number, y, 0.25*math.Abs(x))
		}
		if slices.ContainsFunc(y.Checks, func(c evidence.Check) bool { return overAll(c) || c.Output != "y" }) {
			t.Errorf("case %d: checks %+v, want those that one case can fail", number, y.Checks)
		}
		if (y.Reported != nil) != (number == worst.Case) || y.Reported != nil && (y.Reported.Engine != worst.Engine || y.Reported.Reference != worst.Reference) {
			t.Errorf("case %d: reported %+v, want %+v in case %d alone", number, y.Reported, worst, worst.Case)
		}
	}
	own, err := diagnose.Replay(t.Context(), w.p, built.Ref, diagnose.ReplayOptions{Engine: "int8", Case: 2})
	if err != nil || own.Outputs[0].Reported != nil {
		t.Errorf("without a report: %+v, error %v, want nothing reported", own.Outputs, err)
	}
	given, err := diagnose.Replay(t.Context(), w.p, built.Ref, diagnose.ReplayOptions{Engine: "int8", Inputs: own.Given, Report: &report})
	if err != nil || given.Case != nil || given.Outputs[0].Reported != nil || float64(given.Outputs[0].Engine.Mean) != 3.75 {
		t.Errorf("a saved case: %+v, error %v, want the same outputs, and no number", given, err)
	}
	for name, o := range map[string]diagnose.ReplayOptions{
		"a case that is not there": {Engine: "int8", Case: 3}, "a negative case": {Engine: "int8", Case: -1},
	} {
		if _, err := diagnose.Replay(t.Context(), w.p, built.Ref, o); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
	w.run = func(toolchain.Job, string) error { return errInjected }
	if found, err := diagnose.Replay(t.Context(), w.p, built.Ref, diagnose.ReplayOptions{Engine: "int8"}); !errors.Is(err, errInjected) {
		t.Errorf("a runtime that fails: %+v, error %v, want that error", found, err)
	}
}
