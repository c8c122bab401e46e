package proving

import (
	"errors"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/pipeline/remedy"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

func limited(name string, value, limit float64, v evidence.Verdict) evidence.Check {
	return evidence.Check{Trial: evidence.TrialCases, Output: "y", Figure: name, Value: evidence.Figure(value), Limit: new(evidence.Figure(limit)), Cases: 300, Verdict: v}
}

func engineOf(label string, v evidence.Verdict, metric string, accuracy float64, checks ...evidence.Check) judged {
	p := &evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: v}, Checks: checks, Cases: evidence.CasesRun{Count: 300, Ran: 300}}
	if v != evidence.VerdictPass {
		p.Reasons = []evidence.Reason{{Code: validators.ReasonLimit, Figure: "maxError", Output: "y", Message: "y is off"}}
	}
	if metric != "" {
		p.Accuracy = &evidence.Accuracy{Metric: metric, Engine: evidence.Figure(accuracy), Reference: evidence.Figure(accuracy)}
	}
	return judged{label, p, &evidence.PerformanceReport{ReportHead: evidence.ReportHead{Verdict: evidence.VerdictRecorded}, Latency: evidence.Latency{Samples: 1, P50Ns: 2e6, P99Ns: 3e6}}}
}

// The tables have the lines of a report, the smallest margin with its figure and limit, and the metric by its name. They fit 80 columns.
func TestTablesOfEngines(t *testing.T) {
	t.Parallel()
	const pass, fail = evidence.VerdictPass, evidence.VerdictFail
	engines := []judged{
		engineOf("linux-amd64-v3-openvino/fp32", pass, "mae", 1_174_012, limited("maxError", 0.25, 1, pass), limited("systematic", 0.02, 0.03, pass)),
		engineOf("linux-amd64-v3-openvino/int8", fail, "mae", 1_274_012, limited("maxError", 5, 1, fail)),
		{label: "linux-arm64/fp16"},
	}
	text := ui.Bare(judgedTable(engines) + measuredTable(engines, marginText))
	for _, want := range []string{
		"✓  linux-amd64-v3-openvino/  pass     75 %", " 33 %  ", "✗  linux-amd64-v3-openvino/  fail     ✗",
		"33 %: bias / spread of", "at most 0.03", "MAE ", "  1174000  ", "5 x allowed:", "   linux-arm64/fp16          -",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if len([]rune(line)) > ui.Width+1 {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
	if strings.Contains(text, "LATENCY") || strings.Contains(text, "e+0") {
		t.Errorf("a latency that nothing asks for, or an exponent, in\n%s", text)
	}
	engines[0].performance.Verdict = fail
	if text := ui.Bare(judgedTable(engines)); !strings.Contains(text, "LATENCY") || !strings.Contains(text, "✗  linux-amd64-v3-openvino/  fail") {
		t.Errorf("an engine that is too slow:\n%s", text)
	}
	if got := marginOrReason(*engines[1].parity); got != "y is off" {
		t.Errorf("an inspection shows %q of an engine that fails, want the reason", got)
	}
}

// Engines that fail for one cause share a message; others have messages of their own, and other errors stay.
func TestReadable(t *testing.T) {
	t.Parallel()
	var r verify.Result
	var failures []error
	for _, e := range []struct {
		label, cause string
		reasons      []string
	}{
		{"v1/int8", "rough", []string{"y is 3", "z is 4"}}, {"v3/int8", "rough", []string{"y is 5"}}, {"v1/fp16", "overflow", []string{"y is NaN"}},
	} {
		var v verify.VerifiedEngine
		v.Label, v.Parity.Verdict = e.label, evidence.VerdictFail
		for _, m := range e.reasons {
			v.Parity.Reasons = append(v.Parity.Reasons, evidence.Reason{Message: m})
		}
		r.Engines = append(r.Engines, v)
		failures = append(failures, remedy.WithHint(registry.Errorf(registry.CodeLimit, "%s fails", e.label), e.label, e.cause, "mlpromote bisect "+remedy.RefMark+remedy.EngineMark))
	}
	failures = append(failures, registry.Errorf(registry.CodeUnavailable, "v1/fp32 could not be verified"))
	got := readable(errors.Join(errors.Join(failures...), nil), r, "prod/m:1 ") // as a deferred function adds nothing
	want := `v1/int8, v3/int8 do not keep their limits:
  v1/int8: y is 3; mlpromote report show has 1 more reason
  v3/int8: y is 5
  likely cause: rough
  next: mlpromote bisect prod/m:1 --engine v1/int8
v1/fp16 does not keep its limits:
  y is NaN
  likely cause: overflow
  next: mlpromote bisect prod/m:1 --engine v1/fp16
v1/fp32 could not be verified`
	if got.Error() != want || registry.ExitCode(got) != registry.ExitCode(errors.Join(failures...)) || len(registry.Hints(got)) > 0 {
		t.Errorf("got\n%v\nwant\n%s", got, want)
	}
	if readable(nil, r, "") != nil {
		t.Error("an error without a failure")
	}
}
