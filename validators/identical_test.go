package validators_test

import (
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// bitsOf are the figures of an output in so many cases, of which the engine has the reference's numbers, but for the last bit of some.
func bitsOf(t *testing.T, cases, others int) tensor.Result {
	t.Helper()
	c := tensor.NewComparison(tensor.Options{})
	for i := range cases {
		reference := tensorOf(t, []float32{float32(i), 0, 3})
		engine := tensorOf(t, []float32{float32(i), 0, 3})
		if i < others {
			engine.Data[7] = 0x80 // -0 for 0, which no figure of numbers shows
		}
		if err := c.Add(i, reference, engine); err != nil {
			t.Fatal(err)
		}
	}
	return c.Result()
}

// An engine without another bit passes limits that its cases do not prove, if there are 20 of them; and what is judged again says the same.
func TestIdenticalPasses(t *testing.T) {
	t.Parallel()
	rare := rightFigures(t, accuracy.AUC, every(t, 34, 1373))
	for name, c := range map[string]struct {
		cases, others int
		misses        float64
		class, min    bool // the output has classes; a limit on the accuracy itself
		want          evidence.Verdict
	}{
		"the same bits":       {1373, 0, 0, false, false, evidence.VerdictPass},
		"20 cases":            {20, 0, 0, false, false, evidence.VerdictPass},
		"19 cases":            {19, 0, 0, false, false, evidence.VerdictUndecided},
		"one other bit":       {1373, 1, 0, false, false, evidence.VerdictUndecided},
		"classes alone":       {1373, 0, 0, true, false, evidence.VerdictUndecided},
		"an answer differs":   {1373, 0, 1, false, false, evidence.VerdictUndecided},
		"the accuracy itself": {1373, 0, 0, false, true, evidence.VerdictUndecided},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := bitsOf(t, c.cases, c.others)
			r.Top1Misses, r.Float = c.misses, !c.class
			l := limits2(validators.OutputLimits{Top1: &validators.AtLeast{Min: 0.9999}})
			l.Accuracy = &validators.AccuracyLimit{Metric: accuracy.AUC, Drop: &validators.AtMost{Max: 0.01}, Relative: &validators.AtLeast{Min: 0.999}}
			if c.min {
				l.Accuracy.Min = &validators.AtLeast{Min: 0.9999}
			}
			a := rare.Accuracy()
			got := l.Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": r}, Cases: c.cases, Accuracy: &a, Figures: rare})
			if got.Verdict != c.want {
				t.Errorf("%s for %+v, want %s", got.Verdict, got.Reasons, c.want)
			}
			kept := slices.IndexFunc(got.Checks, func(c evidence.Check) bool { return c.Figure == figure.KeptClasses })
			for i, check := range got.Checks {
				if i == kept { // it passes without a proof
					continue
				}
				text := "no difference in " + registry.Count(c.cases, "case")
				if check.Output == "" {
					text += ", 41 of the rarest class"
				}
				if said := validators.BoundsText(check); c.want == evidence.VerdictPass && (said != text || validators.Margin(check) != 1) {
					t.Errorf("%s: %q with a margin of %v, want %q and 1", check.Figure, said, validators.Margin(check), text)
				}
			}
			dtype := "float32"
			if c.class {
				dtype = "int64"
			}
			report := evidence.ParityReport{Rules: validators.LimitsVersion, Attempts: 1, Confidence: evidence.Figure(got.Confidence), Checks: got.Checks, Accuracy: &a,
				Outputs: map[string]evidence.OutputFigures{"logits": parity.Figures(dtype, r)}}
			report.Verdict, report.Reasons, report.Cases.Ran = got.Verdict, got.Reasons, c.cases
			if lies := liesOf(t, report); len(lies) > 0 {
				t.Errorf("judged again: %+v", lies)
			}
			if c.want != evidence.VerdictPass {
				return
			}
			output := report.Outputs["logits"]
			output.Identical = 0
			report.Outputs["logits"] = output
			if lies := liesOf(t, report); len(lies) != 2*(len(got.Checks)-1) {
				t.Errorf("a pass of outputs that differ: %+v", lies)
			}
		})
	}
}

// liesOf are the checks of a report whose verdicts, or what they rest on, do not follow from it.
func liesOf(t *testing.T, report evidence.ParityReport) []validators.Difference {
	t.Helper()
	again, err := validators.Rejudge(report)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(again.Differences, func(d validators.Difference) bool {
		return !strings.HasSuffix(d.What, ": identical") && !strings.HasSuffix(d.What, ": verdict")
	})
}
