package validators_test

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/percase"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// answersReport is the report on an output "logits" that was compared in cases of this shape, with its per-case figures.
func answersReport[T tensor.Scalar](t *testing.T, o validators.OutputLimits, shape []int64, reference, engine [][]T) percaseReport {
	t.Helper()
	comparison := tensor.NewComparison(tensor.Options{})
	for i := range reference {
		want, errWant := tensor.New(reference[i], shape...)
		got, errGot := tensor.New(engine[i], shape...)
		if err := comparison.Add(i, want, got); err != nil || errWant != nil || errGot != nil {
			t.Fatal(err, errWant, errGot)
		}
	}
	n, l, result := len(reference), limits2(o), comparison.Result()
	j := l.Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": result}, Cases: n})
	file, leftOut, err := percase.Figures{Outputs: map[string][]tensor.CaseFigures{"logits": comparison.Each()}}.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return percaseReport{file: file, limits: l, report: evidence.ParityReport{
		ReportHead: evidence.ReportHead{Verdict: j.Verdict, Reasons: j.Reasons}, Cases: evidence.CasesRun{Count: n, Ran: n},
		Outputs: map[string]evidence.OutputFigures{"logits": parity.Figures("float32", result)}, Rules: l.V,
		Confidence: evidence.Figure(j.Confidence), Attempts: 1, Checks: slices.Concat(j.Checks, goldenCompared()), CaseFigures: evidence.NameCaseFigures(file, leftOut),
	}}
}

// repeated are so many cases with the same values.
func repeated[T any](n int, values ...T) [][]T {
	all := make([][]T, n)
	for i := range all {
		all[i] = values
	}
	return all
}

// Rows that say nothing prove no share of equal best classes, and no report that says so is doubted.
func TestRecountRowsThatSayNothing(t *testing.T) {
	t.Parallel()
	limits := validators.OutputLimits{Top1: &validators.AtLeast{Min: 0.9}}
	for name, c := range map[string]struct {
		shape  []int64
		values []float32
		cases  int
		want   evidence.Verdict
	}{
		"rows":              {[]int64{1, 2, 2}, []float32{1, 2, 0, 0}, 60, evidence.VerdictPass},
		"silent rows alone": {[]int64{1, 2, 2}, []float32{2, 2, 0, 0}, 0, evidence.VerdictUndecided},
		"no rows":           {[]int64{1, 4, 1}, []float32{1, 2, 0, 0}, 0, evidence.VerdictFail},
	} {
		cases := repeated(60, c.values...)
		p := answersReport(t, limits, c.shape, cases, cases)
		got, err := p.again()
		if err != nil || p.report.Verdict != c.want || got.Verdict != c.want || len(got.Differences) > 0 {
			t.Errorf("%s: %s, and judged again %s with %+v (%v); want %s without a difference",
				name, p.report.Verdict, got.Verdict, got.Differences, err, c.want)
		}
		if ranked := p.report.Checks[0].Cases; ranked != c.cases {
			t.Errorf("%s: %d cases, want %d", name, ranked, c.cases)
		}
	}
}

// A report of an engine that loses a class does not pass by leaving that out.
func TestRejudgeWithoutClasses(t *testing.T) {
	t.Parallel()
	limits := validators.OutputLimits{Equal: &validators.AtLeast{Min: 0.5}}
	reference := append(repeated(380, int64(0)), repeated(20, int64(1))...)
	for name, c := range map[string]struct {
		engine [][]int64
		left   bool // whether the check is left out
		want   evidence.Verdict
	}{
		"a constant":                    {repeated(400, int64(0)), false, evidence.VerdictFail},
		"a constant, left out":          {repeated(400, int64(0)), true, evidence.VerdictUndecided},
		"half of the others":            {append(repeated(390, int64(0)), repeated(10, int64(1))...), false, evidence.VerdictPass},
		"half of the others, left out":  {append(repeated(390, int64(0)), repeated(10, int64(1))...), true, evidence.VerdictUndecided},
		"fewer than half of the others": {append(repeated(396, int64(0)), repeated(4, int64(1))...), false, evidence.VerdictFail},
	} {
		for _, precision := range []string{"fp32", ""} {
			p := answersReport(t, limits, []int64{1}, reference, c.engine)
			if c.left {
				p.report.Checks = slices.DeleteFunc(p.report.Checks, func(c evidence.Check) bool { return c.Figure == figure.KeptClasses })
				p.report.Verdict, p.report.Reasons = evidence.VerdictPass, nil
			}
			got, err := validators.RejudgeWith(p.report, validators.Beside{Figures: p.file, Limits: &p.limits, Precision: precision})
			missing := slices.ContainsFunc(got.Differences, func(d validators.Difference) bool { return d.What == "output logits, classes" })
			if err != nil || got.Verdict != c.want || missing != c.left || !c.left && len(got.Differences) > 0 {
				t.Errorf("%s, precision %q: %s, %+v (%v); want %s", name, precision, got.Verdict, got.Differences, err, c.want)
			}
		}
	}
}

// A check of classes is one that limits on equal answers ask for, and no other.
func TestRejudgeClassesWithoutLimit(t *testing.T) {
	t.Parallel()
	reference := append(repeated(380, int64(0)), repeated(20, int64(1))...)
	p := answersReport(t, validators.OutputLimits{Equal: &validators.AtLeast{Min: 0.5}}, []int64{1}, reference, reference)
	p.limits = limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{Max: 1}})
	got, err := p.again()
	if err != nil || !slices.ContainsFunc(got.Differences, func(d validators.Difference) bool {
		return d.What == "output logits, classes" && d.Said == "a check"
	}) {
		t.Errorf("%+v (%v); want a difference in classes", got, err)
	}
}
