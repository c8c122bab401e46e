package policy_test

import (
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
)

func TestReportRuleIsValid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  policy.ReportRule
		valid bool
	}{
		{policy.ReportRule{}, true},
		{policy.ReportRule{MaxAge: time.Minute}, true},
		{policy.ReportRule{MaxAge: time.Minute - 1}, false},
		{policy.ReportRule{MaxAge: -time.Hour}, false},
		{policy.ReportRule{Verifiers: 1}, true},
		{policy.ReportRule{Verifiers: 100}, true},
		{policy.ReportRule{Verifiers: 101}, false},
		{policy.ReportRule{Verifiers: -1}, false},
		{policy.ReportRule{Cases: 1}, true},
		{policy.ReportRule{Cases: -1}, false},
		{policy.ReportRule{Rare: 2}, true},
		{policy.ReportRule{Rare: 1}, false},
		{policy.ReportRule{Rare: -2}, false},
		{policy.ReportRule{Rare: evidence.MostRare}, true},
		{policy.ReportRule{Rare: evidence.MostRare + 1}, false},
	} {
		if err := c.rule.Validate(); (err == nil) != c.valid || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%+v: error %v, want valid %t", c.rule, err, c.valid)
		}
	}
}

// The boundary of an age is the instant itself, and verifiers are counted by key.
func TestReportRule(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Engines = r.Engines[:1]
	e := r.Engines[0]
	made := time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)
	by := func(signer string, recorded int64, at time.Time, v evidence.Verdict) evidence.Claim {
		c := parity(r, e, 1, v, nil)
		c.Signer, c.Recorded, c.RecordedAt = signer, recorded, at
		return c
	}
	first, again := by("first", 7, made, evidence.VerdictPass), by("first", 9, made.Add(time.Hour), evidence.VerdictPass)
	again.Statement.Predicate = parity(r, e, 2, evidence.VerdictPass, nil).Statement.Predicate
	const pass = evidence.VerdictPass
	cases := func(ran, counted int) evidence.Claim {
		c := parity(r, e, 1, evidence.VerdictPass, func(p *evidence.ParityReport) {
			p.Cases.Count, p.Cases.Ran = ran, ran
			p.Checks = evidence.Checks{{Trial: evidence.TrialCases, Output: "a", Figure: "maxAbs", Cases: ran, Verdict: pass}, {Trial: evidence.TrialCases, Output: "b", Figure: "top1", Cases: 1, Verdict: pass}, {Trial: evidence.TrialCases, Output: "b", Figure: "maxAbs", Cases: counted, Verdict: pass}}
		})
		c.Signer, c.Recorded, c.RecordedAt = "first", 7, made
		return c
	}
	repeated := func(runs int) evidence.Claim {
		c := parity(r, e, 1, evidence.VerdictPass, func(p *evidence.ParityReport) {
			if runs > 0 {
				p.Checks = append(p.Checks, evidence.Check{Trial: evidence.TrialRepeat, Cases: runs - 13, Verdict: pass}, evidence.Check{Trial: evidence.TrialProcess, Cases: 13, Verdict: pass})
			}
		})
		c.Signer, c.Recorded, c.RecordedAt = "first", 7, made
		return c
	}
	second := by("second", 8, made, evidence.VerdictPass)
	for name, c := range map[string]struct {
		rule   policy.ReportRule
		now    time.Time
		claims []evidence.Claim
		want   string // empty: met
		until  time.Time
	}{
		"young enough":     {policy.ReportRule{MaxAge: time.Hour}, made.Add(time.Hour - 1), []evidence.Claim{first}, "", made.Add(time.Hour)},
		"at the limit":     {policy.ReportRule{MaxAge: time.Hour}, made.Add(time.Hour), []evidence.Claim{first}, "passing reports of 0 verifiers from the last 1h0m0s, and 1 must have found that it passes; 1 report of earlier do not count", time.Time{}},
		"without a time":   {policy.ReportRule{MaxAge: time.Hour}, time.Time{}, []evidence.Claim{first}, "0 verifiers", time.Time{}},
		"not recorded":     {policy.ReportRule{MaxAge: time.Hour}, made, []evidence.Claim{by("first", 0, time.Time{}, evidence.VerdictPass)}, "0 verifiers", time.Time{}},
		"verified again":   {policy.ReportRule{MaxAge: time.Hour}, made.Add(time.Hour), []evidence.Claim{first, again}, "", made.Add(2 * time.Hour)},
		"made long before": {policy.ReportRule{MaxAge: time.Hour}, made.Add(48 * time.Hour), []evidence.Claim{by("first", 7, made.Add(48*time.Hour-1), evidence.VerdictPass)}, "0 verifiers", time.Time{}},
		"a failure stands": {policy.ReportRule{Verifiers: 1}, made, []evidence.Claim{first, by("second", 8, made, evidence.VerdictFail)}, "parity verdict", time.Time{}},
		"two verifiers":    {policy.ReportRule{Verifiers: 2}, made, []evidence.Claim{first, second}, "", time.Time{}},
		"one, twice":       {policy.ReportRule{Verifiers: 2}, made, []evidence.Claim{first, again}, "passing reports of 1 verifier, and 2 must", time.Time{}},
		"one failed":       {policy.ReportRule{Verifiers: 2}, made, []evidence.Claim{first, by("second", 8, made, evidence.VerdictFail)}, "parity verdict", time.Time{}},
		"enough cases":     {policy.ReportRule{Cases: 40}, made, []evidence.Claim{cases(40, 40), cases(400, 40)}, "", time.Time{}},
		"too few ran":      {policy.ReportRule{Cases: 40}, made, []evidence.Claim{cases(39, 39)}, "passing reports of 0 verifiers with 40 cases or more, and 1 must have found that it passes; one shows 39 cases of the 40 that are wanted", time.Time{}},
		"too few count":    {policy.ReportRule{Cases: 40}, made, []evidence.Claim{cases(400, 39)}, "one shows 39 cases of the 40 that are wanted", time.Time{}},
		"enough runs":      {policy.ReportRule{Rare: 500}, made, []evidence.Claim{repeated(345), repeated(346)}, "", time.Time{}},
		"too few runs": {policy.ReportRule{Rare: 500}, made, []evidence.Claim{repeated(64), repeated(345)}, "passing reports of 0 verifiers that would miss a difference in 1 of 500 requests at most half of the time, and 1 must have found that it passes; " +
			"the repeated runs of a report would miss a difference in 1 of 498 requests half of the time, and 1 of 500 is wanted: set limits.consistency.rare to 500 in mlpromote.yaml, build and verify", time.Time{}},
		"no runs":            {policy.ReportRule{Rare: 2}, made, []evidence.Claim{repeated(0)}, "a report has no repeated runs, and 1 of 2 is wanted", time.Time{}},
		"none":               {policy.ReportRule{Verifiers: 1}, made, nil, "0 verifiers, and 1 must have found that it passes: run", time.Time{}},
		"the newer of one":   {policy.ReportRule{MaxAge: 2 * time.Hour}, made.Add(time.Hour), []evidence.Claim{first, again}, "", made.Add(3 * time.Hour)},
		"the older one ends": {policy.ReportRule{MaxAge: time.Hour, Verifiers: 2}, made.Add(time.Minute), []evidence.Claim{again, second}, "", made.Add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := policy.Environment{Name: "prod", From: "staging", Require: []string{policy.RequireSignature}, Reports: c.rule}.Policy()
			p.Promotion.Now = c.now
			p.Promotion.Restrictions = restriction.NoRestrictions()
			d := p.Check(r, append(enough(r)[:2], c.claims...))
			for _, req := range d.Requirements {
				if req.Name != "reports" {
					continue
				}
				if req.Met != (c.want == "") || !strings.Contains(req.Detail, c.want) || !d.Until.Equal(c.until) {
					t.Errorf("got met %t until %v: %s; want %q until %v", req.Met, d.Until, req.Detail, c.want, c.until)
				}
				return
			}
			t.Error("reports is not required")
		})
	}
}

// A report on generated cases counts as fresh unless the environment wants recorded ones.
func TestReportRuleOfRecordedCases(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Engines = r.Engines[:1]
	generated := parity(r, r.Engines[0], 1, evidence.VerdictPass, func(p *evidence.ParityReport) { p.Cases.Origin = artifact.OriginGenerated })
	recorded := parity(r, r.Engines[0], 1, evidence.VerdictPass, nil)
	for name, c := range map[string]struct {
		require []string
		report  evidence.Claim
		met     bool
	}{
		"generated cases":                      {nil, generated, true},
		"recorded cases":                       {nil, recorded, true},
		"generated cases, wanted are recorded": {[]string{policy.RequireRecordedCases}, generated, false},
		"recorded cases, as wanted":            {[]string{policy.RequireRecordedCases}, recorded, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := policy.Environment{Name: "prod", From: "staging", Require: c.require, Reports: policy.ReportRule{Verifiers: 1}}.Policy()
			p.Promotion.Restrictions = restriction.NoRestrictions()
			d := p.Check(r, append(enough(r)[:2], c.report))
			for _, req := range d.Requirements {
				if req.Name == "reports" && req.Met != c.met {
					t.Errorf("met %t: %s; want %t", req.Met, req.Detail, c.met)
				}
			}
		})
	}
}
