package validators_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// reported is the report that verify writes about an engine with one output and labels.
func reported(l validators.Limits, result tensor.Result, a *evidence.Accuracy, attempts int) evidence.ParityReport {
	judged := l.Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": result},
		Accuracy: a, Current: a, Cases: result.Cases, Attempts: attempts})
	return evidence.ParityReport{
		ReportHead: evidence.ReportHead{Verdict: judged.Verdict, Reasons: judged.Reasons},
		Cases:      evidence.CasesRun{Count: result.Cases, Ran: result.Cases},
		Outputs:    map[string]evidence.OutputFigures{"logits": parity.Figures("float32", result)},
		Accuracy:   a, Current: &evidence.CurrentAccuracy{Accuracy: *a}, Rules: l.V, Confidence: evidence.Figure(judged.Confidence), Attempts: attempts, Checks: slices.Concat(judged.Checks, goldenCompared()),
	}
}

// everyLimit is limits of every figure that limits have.
func everyLimit() validators.Limits {
	tolerance := 0.5
	l := limits2(validators.OutputLimits{RTol: &tolerance, ATol: &tolerance, Cosine: &validators.AtLeast{Min: 0.9}, SNRdB: &validators.AtLeast{Min: 20},
		Top1: &validators.AtLeast{Min: 0.95}, Equal: &validators.AtLeast{Min: 0.95}, MaxAbs: &validators.AtMost{Max: 1},
		MaxError: &validators.AtMost{Max: 1}, CaseError: &validators.AtMost{Max: 0.5}})
	l.Accuracy = &validators.AccuracyLimit{Metric: "top1", Drop: &validators.AtMost{Max: 0.05},
		Regression: &validators.AtMost{Max: 0.05}, Min: &validators.AtLeast{Min: 0.8}}
	return l
}

// passing is a report that passes every limit.
func passing(t *testing.T) evidence.ParityReport {
	t.Helper()
	a := &evidence.Accuracy{Metric: "top1", Reference: 0.9, Engine: 0.9, Lost: 1, Won: 1, Right: 540, Cases: 600, Count: 600}
	report := reported(everyLimit(), equalResult(600), a, 2)
	if report.Verdict != evidence.VerdictPass || len(report.Checks.OfCases()) != 11 {
		t.Fatalf("the report passes with 11 checks: %s, %d: %v", report.Verdict, len(report.Checks.OfCases()), report.Reasons)
	}
	return report
}

// Whatever Judge writes says the same when it is judged again, also after it was stored as JSON.
func TestRejudgeAgreesWithJudge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cases := rapid.IntRange(2, 2000).Draw(t, "cases")
		figure := rapid.OneOf(rapid.Float64Range(0, 2), rapid.SampledFrom([]float64{0, 0.5, 1, math.Inf(1), math.Inf(-1), math.NaN()}))
		r := equalResult(cases)
		r.MaxAbs, r.MaxError, r.CaseError = figure.Draw(t, "maxAbs"), figure.Draw(t, "maxError"), figure.Draw(t, "caseError")
		r.CosineMin, r.SpreadSNR = figure.Draw(t, "cosine"), 20*figure.Draw(t, "snr")
		r.Failed, r.NewNaN = rapid.Int64Range(0, 1).Draw(t, "failed"), rapid.Int64Range(0, 1).Draw(t, "nan")
		few := min(cases, 80)
		r.Top1Misses = rapid.Float64Range(0, float64(few)).Draw(t, "top1")
		r.EqualMisses = float64(rapid.IntRange(0, few).Draw(t, "equal"))
		r.FullCases = rapid.IntRange(few, cases).Draw(t, "cases with elements")
		r.Top1Cases = rapid.IntRange(few, r.FullCases).Draw(t, "cases with rows")
		if rapid.Bool().Draw(t, "no rows") {
			r.Top1Rows, r.Top1Cases = 0, 0
		}
		lost := rapid.IntRange(0, few/2).Draw(t, "lost")
		won := rapid.IntRange(0, few/2).Draw(t, "won")
		a := &evidence.Accuracy{Metric: "top1", Lost: evidence.Figure(lost),
			Won: evidence.Figure(won), Right: evidence.Figure(cases - lost), Cases: cases, Count: cases}
		report := reported(everyLimit(), r, a, rapid.IntRange(1, 5).Draw(t, "attempts"))
		data, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		var read evidence.ParityReport
		if err := registry.DecodeSigned(data, &read); err != nil {
			t.Fatal(err)
		}
		got, err := validators.Rejudge(read)
		if err != nil || len(got.Differences) > 0 || got.Verdict != report.Verdict || got.Confidence != 0.95 {
			t.Fatalf("%v: %+v\nof %s", err, got, data)
		}
	})
}

// Every thing that a report says and that follows from something else in it is noticed if it is
// another one.
func TestRejudgeNotices(t *testing.T) {
	t.Parallel()
	f := func(v float64) *evidence.Figure { figure := evidence.Figure(v); return &figure }
	on := func(figure string, change func(c *evidence.Check)) func(r *evidence.ParityReport) {
		return func(r *evidence.ParityReport) {
			change(&r.Checks[slices.IndexFunc(r.Checks, func(c evidence.Check) bool { return c.Figure == figure })])
		}
	}
	limit := func(v float64) func(c *evidence.Check) {
		return func(c *evidence.Check) { c.Limit = new(evidence.Figure(v)) }
	}
	for name, c := range map[string]struct {
		change func(r *evidence.ParityReport)
		what   string
		want   evidence.Verdict
	}{
		"a rate below its limit":            {on("top1", limit(0.999)), "output logits, top1: verdict", evidence.VerdictUndecided},
		"a rate far below its limit":        {on("accuracy", limit(0.99)), "accuracy: verdict", evidence.VerdictFail},
		"a drop above its limit":            {on("drop", limit(0.001)), "drop: verdict", evidence.VerdictUndecided},
		"an error above its limit":          {on("maxError", limit(-1)), "output logits, maxError: verdict", evidence.VerdictFail},
		"a cosine below its limit":          {on("cosine", limit(1.5)), "output logits, cosine: verdict", evidence.VerdictFail},
		"a limit in the other direction":    {on("cosine", func(c *evidence.Check) { c.AtLeast = false }), "output logits, cosine: atLeast", evidence.VerdictPass},
		"elements that failed":              {on("elements", func(c *evidence.Check) { c.Value, c.Limit = 3, new(evidence.Figure(5)) }), "output logits, elements: verdict", evidence.VerdictFail},
		"a bound that is too good":          {on("top1", func(c *evidence.Check) { c.Low = f(1) }), "output logits, top1: low", evidence.VerdictPass},
		"the other bound":                   {on("equal", func(c *evidence.Check) { c.High = f(0.99) }), "output logits, equal: high", evidence.VerdictPass},
		"no bound":                          {on("drop", func(c *evidence.Check) { c.High = nil }), "drop: high", evidence.VerdictPass},
		"fewer misses":                      {on("accuracy", func(c *evidence.Check) { c.Misses = f(0) }), "accuracy: misses", evidence.VerdictPass},
		"no misses":                         {on("equal", func(c *evidence.Check) { c.Misses = nil }), "output logits, equal: misses", evidence.VerdictUndecided},
		"misses that are no number":         {on("equal", func(c *evidence.Check) { c.Misses = f(math.NaN()) }), "output logits, equal: verdict", evidence.VerdictFail},
		"answers won":                       {on("drop", func(c *evidence.Check) { c.Won = f(5) }), "drop: won", evidence.VerdictPass},
		"answers won that cannot be":        {on("drop", func(c *evidence.Check) { c.Won = f(601) }), "drop: misses and won", evidence.VerdictUndecided},
		"another value of a rate":           {on("top1", func(c *evidence.Check) { c.Value = 0.99 }), "output logits, top1: value", evidence.VerdictPass},
		"another value of an error":         {on("maxAbs", func(c *evidence.Check) { c.Value = 0.5 }), "output logits, maxAbs: value", evidence.VerdictPass},
		"more proven than is":               {on("caseError", func(c *evidence.Check) { c.Proves = f(0.0001) }), "output logits, caseError: proves", evidence.VerdictPass},
		"more cases than ran":               {on("maxAbs", func(c *evidence.Check) { c.Cases = 6000 }), "output logits, maxAbs: cases", evidence.VerdictPass},
		"more cases than have answers":      {on("accuracy", func(c *evidence.Check) { c.Cases = 6000 }), "accuracy: cases", evidence.VerdictPass},
		"an output that is not there":       {on("maxAbs", func(c *evidence.Check) { c.Output = "y" }), "output y, maxAbs", evidence.VerdictPass},
		"a figure of no limit":              {on("maxAbs", func(c *evidence.Check) { c.Figure = "beauty" }), "output logits, beauty", evidence.VerdictUndecided},
		"a regression above its limit":      {on("regression", limit(0.001)), "regression: verdict", evidence.VerdictUndecided},
		"a regression against nothing":      {func(r *evidence.ParityReport) { r.Current = nil }, "regression", evidence.VerdictPass},
		"no accuracy":                       {func(r *evidence.ParityReport) { r.Accuracy = nil }, "accuracy", evidence.VerdictPass},
		"a check that says fail":            {on("maxAbs", func(c *evidence.Check) { c.Verdict = evidence.VerdictFail }), "output logits, maxAbs: verdict", evidence.VerdictPass},
		"more attempts":                     {func(r *evidence.ParityReport) { r.Attempts = 20 }, "confidence", evidence.VerdictPass},
		"no attempt":                        {func(r *evidence.ParityReport) { r.Attempts = 0 }, "attempts", evidence.VerdictPass},
		"a lower confidence":                {func(r *evidence.ParityReport) { r.Confidence = 0.9 }, "output logits, top1: low", evidence.VerdictPass},
		"no checks":                         {func(r *evidence.ParityReport) { r.Checks = nil }, "verdict", evidence.VerdictUndecided},
		"no cases":                          {func(r *evidence.ParityReport) { r.Cases = evidence.CasesRun{} }, "verdict", evidence.VerdictUndecided},
		"cases that did not run":            {func(r *evidence.ParityReport) { r.Cases.Count = 601 }, "verdict", evidence.VerdictUndecided},
		"a fail without a reason":           {func(r *evidence.ParityReport) { r.Verdict = evidence.VerdictFail }, "verdict", evidence.VerdictPass},
		"undecided without a reason":        {func(r *evidence.ParityReport) { r.Verdict = evidence.VerdictUndecided }, "verdict", evidence.VerdictPass},
		"a pass with a reason that a check": {func(r *evidence.ParityReport) { r.Reasons = []evidence.Reason{{Code: validators.ReasonLimit}} }, "reasons", evidence.VerdictPass},
		"a pass with a reason beside":       {func(r *evidence.ParityReport) { r.Reasons = []evidence.Reason{{Code: "jitter"}} }, "verdict", evidence.VerdictUndecided},
		"a pass with NaN": {func(r *evidence.ParityReport) {
			o := r.Outputs["logits"]
			o.NewNaN = 1
			r.Outputs["logits"] = o
		}, "verdict", evidence.VerdictFail},
		"a pass with a failed consistency check": {func(r *evidence.ParityReport) {
			r.Checks = append(r.Checks, evidence.Check{Trial: evidence.TrialBatch, Verdict: evidence.VerdictFail})
		}, "verdict", evidence.VerdictFail},
		"a pass with a plain load that fails": {func(r *evidence.ParityReport) {
			r.Checks = append(r.Checks, evidence.Check{Trial: evidence.TrialPlainLoad, Verdict: evidence.VerdictFail})
		}, "verdict", evidence.VerdictFail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := passing(t)
			c.change(&report)
			got, err := validators.Rejudge(report)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(got.Differences, func(d validators.Difference) bool { return d.What == c.what }) || got.Verdict != c.want {
				t.Errorf("got %s, %+v; want %s and a difference in %q", got.Verdict, got.Differences, c.want, c.what)
			}
		})
	}
}

// A limit is kept by a bound at the limit itself, and not by the next one.
func TestRejudgeAtTheLimits(t *testing.T) {
	t.Parallel()
	for figure, worse := range map[string]float64{"top1": 1, "drop": -1, "maxError": -1, "snrDb": 1} {
		report := passing(t)
		c := &report.Checks[slices.IndexFunc(report.Checks, func(c evidence.Check) bool { return c.Figure == figure })]
		bound := c.Value
		switch figure {
		case "top1":
			bound = *c.Low
		case "drop":
			bound = *c.High
		case "snrDb":
			bound, c.Value = 40, 40
			o := report.Outputs["logits"]
			o.SpreadSNRdB = 40
			report.Outputs["logits"] = o
		}
		for limit, want := range map[evidence.Figure]bool{bound: true, evidence.Figure(math.Nextafter(float64(bound), worse*math.Inf(1))): false} {
			c.Limit = new(limit)
			got, err := validators.Rejudge(report)
			if passes := got.Verdict == evidence.VerdictPass; err != nil || passes != want {
				t.Errorf("%s with the limit %v: %v, %+v; want a pass: %v", figure, limit, err, got, want)
			}
		}
	}
}

// What fails without a check, such as another shape, is as the report says.
func TestRejudgeBelievesReasonsBeside(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]evidence.ParityReport{
		"shape": {ReportHead: evidence.ReportHead{Verdict: evidence.VerdictFail, Reasons: []evidence.Reason{{Code: "shape"}}},
			Cases: evidence.CasesRun{Count: 8}, Rules: validators.LimitsVersion, Attempts: 1, Confidence: 0.95},
		"too few cases": func() evidence.ParityReport {
			r := passing(t)
			r.Verdict, r.Reasons = evidence.VerdictUndecided, []evidence.Reason{{Code: validators.ReasonTooFewCases}}
			return r
		}(),
		"a plain load that fails, and nodes keep the profile": func() evidence.ParityReport {
			r := passing(t)
			r.Checks = append(r.Checks, evidence.Check{Trial: evidence.TrialPlainLoad, Verdict: evidence.VerdictRecorded, Cases: 3})
			r.Settings.Profile = &artifact.LoadProfile{Required: true}
			return r
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := validators.Rejudge(report)
			if err != nil || got.Verdict != report.Verdict || len(got.Differences) > 0 || report.Attempts == 1 && got.Confidence != 0.95 {
				t.Errorf("%v: %+v, want %s as it says", err, got, report.Verdict)
			}
		})
	}
}

// A report by rules that are not known cannot be judged again.
func TestRejudgeRefuses(t *testing.T) {
	t.Parallel()
	for _, rules := range []int{-1, 0, 2} {
		_, err := validators.Rejudge(evidence.ParityReport{Rules: rules})
		if want := fmt.Sprintf("limits of version %d: this program knows version 1", rules); registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("rules %d: %v, want %q", rules, err, want)
		}
	}
}

// FuzzRejudge judges hostile reports again: it ends, and a report that differs in nothing has the
// verdict that it says.
func FuzzRejudge(f *testing.F) {
	f.Add([]byte(`{"verdict":"pass","rules":1,"confidence":0.95,"attempts":1,"cases":{"count":1,"ran":1},"outputs":{"y":{"maxAbs":1}},"checks":[` +
		`{"output":"y","figure":"maxAbs","value":1,"limit":1,"verdict":"pass","cases":1,"proves":0.95}]}`))
	f.Add([]byte(`{"verdict":"fail","rules":1,"confidence":"nan","attempts":-1,"checks":[{"figure":"drop","misses":1e300,"won":"inf","cases":-9},{"figure":"top1","misses":"-inf","cases":9007199254740991}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var report evidence.ParityReport
		if registry.DecodeSigned(data, &report) != nil {
			return
		}
		got, err := validators.Rejudge(report)
		if err == nil && len(got.Differences) == 0 && got.Verdict != report.Verdict {
			t.Errorf("%s: says %s, follows %s, without a difference", data, report.Verdict, got.Verdict)
		}
	})
}
