package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// Limits on numbers of 16 bits may be those of their own type, and no looser.
func TestCeilingsOfHalfPrecisionOutputs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dtype    string
		maxError evidence.Figure
		allowed  bool
	}{
		{"float16", 0.5, true}, {"float16", 0.6, false}, {"bfloat16", 1.5, true}, {"bfloat16", 1.6, false}, {"float32", 0.02, false},
	} {
		t.Run(fmt.Sprint(c.dtype, c.maxError), func(t *testing.T) {
			t.Parallel()
			policy := policy.Policy{Require: []string{"ceilings"}, Ceilings: policy.Ceilings{
				"fp32": {"maxError": 0.01, "cosine": 0.999}, "fp16": {"maxError": 0.5}, "bf16": {"maxError": 1.5, "snrDb": 18}}}
			r := sample()
			r.Engines = r.Engines[:1]
			for _, cosine := range []evidence.Figure{0.999, 0.9} { // which fp16 does not bound, so that it stays as it is
				pass := parity(r, r.Engines[0], 1, evidence.VerdictPass, func(p *evidence.ParityReport) {
					p.Rules, p.Outputs = evidence.ReportRules, map[string]evidence.OutputFigures{"y": {DType: c.dtype, Kind: "embedding"}}
					p.Checks = evidence.Checks{{Trial: evidence.TrialCases, Output: "y", Figure: "maxError", Limit: new(evidence.Figure(c.maxError)), Verdict: evidence.VerdictPass}, {Trial: evidence.TrialCases, Output: "y", Figure: "cosine", Limit: new(evidence.Figure(cosine)), AtLeast: true, Verdict: evidence.VerdictPass}}
				})
				want := c.allowed && cosine == 0.999
				if d := policy.Check(r, []evidence.Claim{pass}); d.Allowed() != want {
					t.Errorf("cosine %v: allowed %t, want %t: %s", cosine, d.Allowed(), want, unmet(d))
				}
			}
		})
	}
}

// Ceilings on top1 and close are of outputs that have such a limit by what they are. A limit that a spec or a builder left out is none.
func TestCeilingsOfSharesOfCases(t *testing.T) {
	t.Parallel()
	figures := func(kind, dtype string, few bool) evidence.OutputFigures {
		return evidence.OutputFigures{Kind: kind, DType: dtype, Few: few}
	}
	for name, c := range map[string]struct {
		output evidence.OutputFigures
		figure string // that the only check is of; none: no check
		limit  evidence.Figure
		want   string
	}{
		"scores":                            {figures("scores", "float32", false), "top1", 0.85, ""},
		"too few best classes":              {figures("scores", "float32", false), "top1", 0.84, "a limit of 0.84 on top1, and 0.85 is the loosest allowed: set limits.outputs.NAME.top1"},
		"tokens without it":                 {figures("tokens", "float16", false), "", 0, "output y has no limit on top1"},
		"two scores":                        {figures("probability", "float32", true), "top1", 0.9, ""},
		"an unknown kind":                   {figures("", "float32", false), "", 0, "output y has no limit on top1"},
		"an embedding":                      {figures("embedding", "float32", false), "", 0, ""},
		"a number":                          {figures("value", "float32", true), "close", 0.9, ""},
		"a whole number that is a quantity": {figures("value", "int64", true), "close", 0.5, "a limit of 0.5 on close, and 0.9 is the loosest allowed: set limits.outputs.NAME.close"},
		"a number without it":               {figures("other", "float32", true), "", 0, "output y has no limit on close"},
		"a row of numbers":                  {figures("value", "float32", false), "", 0, ""},
		"a class":                           {figures("class", "int64", true), "", 0, ""},
		"whole numbers that are scores":     {figures("scores", "int32", false), "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := policy.Policy{Require: []string{"ceilings"}, Ceilings: policy.Ceilings{"int8": {"top1": 0.85, "close": 0.9}}}
			r := sample()
			r.Engines = r.Engines[1:]
			pass := parity(r, r.Engines[0], 1, evidence.VerdictPass, func(p *evidence.ParityReport) {
				p.Rules, p.Outputs = evidence.ReportRules, map[string]evidence.OutputFigures{"y": c.output}
				if c.figure != "" {
					p.Checks = evidence.Checks{{Trial: evidence.TrialCases, Output: "y", Figure: c.figure, Limit: new(evidence.Figure(c.limit)), AtLeast: true, Verdict: evidence.VerdictPass}}
				}
			})
			d := policy.Check(r, []evidence.Claim{pass})
			if got := unmet(d); d.Allowed() != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet %q, want %q", got, c.want)
			}
		})
	}
}
