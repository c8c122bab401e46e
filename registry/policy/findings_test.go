package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// recorded is a claim that the history first names in a row. Rows are an hour apart.
func recorded(row int64, c evidence.Claim) evidence.Claim {
	c.Recorded, c.RecordedAt = row, time.Date(2026, 1, 1, int(row), 0, 0, 0, time.UTC)
	return c
}

// saw is a claim whose report names a row of the history. 0 stands for an unknown hash.
func saw(row int64, c evidence.Claim) evidence.Claim {
	c.Observed = row
	return c
}

// rewrapped is the same signed statement in another bundle.
func rewrapped(c evidence.Claim) evidence.Claim {
	c.Bundle = digest.FromString("another bundle of " + string(c.Bundle))
	return c
}

// The history orders reports. A pass heals only failures that its verifier could know of.
func TestOrderIsThatOfTheHistory(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[1]
	report := func(hour int, v evidence.Verdict) evidence.Claim { return parity(r, e, hour, v, nil) }
	// A modern report names the history that it saw. It took an hour and ended at this one.
	modern := func(hour int, v evidence.Verdict) evidence.Claim {
		return parity(r, e, hour, v, func(p *evidence.ParityReport) { p.History = evidence.NewDigestSet(digest.FromString("an event")) })
	}
	fail, pass := evidence.VerdictFail, evidence.VerdictPass
	far := func(v evidence.Verdict) evidence.Claim { // dated 2099
		return parity(r, e, 1, v, func(p *evidence.ParityReport) { p.FinishedOn = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC) })
	}
	elsewhere := parity(r, e, 7, pass, func(p *evidence.ParityReport) { p.Node.CPU.Model = "second" })
	slow := parity(r, e, 5, pass, func(p *evidence.ParityReport) { p.StartedOn = p.StartedOn.Add(-4 * time.Hour) }) // from 0 to 5
	for _, c := range []struct {
		name   string
		claims []evidence.Claim
		passes bool
	}{
		{"a failure that was recorded later stands, whatever it says of its time", []evidence.Claim{recorded(5, modern(5, pass)), recorded(7, modern(2, fail))}, false},
		{"a pass dated 2099 does not count", []evidence.Claim{recorded(5, far(pass))}, false},
		{"a pass dated 2099 hides no failure", []evidence.Claim{recorded(3, report(3, pass)), recorded(5, far(pass)), recorded(7, modern(7, fail))}, false},
		{"a failure dated 2099 counts", []evidence.Claim{recorded(3, report(3, pass)), recorded(5, far(fail))}, false},
		{"a failure dated 2099 is healed by a pass that saw it", []evidence.Claim{recorded(5, far(fail)), saw(5, recorded(7, modern(7, pass)))}, true},
		{"a pass that saw the failure heals it", []evidence.Claim{recorded(5, modern(5, fail)), saw(5, recorded(7, modern(7, pass)))}, true},
		{"a pass that saw more than the failure heals it", []evidence.Claim{recorded(5, modern(5, fail)), saw(6, recorded(7, modern(7, pass)))}, true},
		{"a pass that began before the failure was recorded heals nothing", []evidence.Claim{recorded(5, modern(5, fail)), saw(4, recorded(7, modern(7, pass)))}, false},
		{"a pass that names an unknown hash heals nothing", []evidence.Claim{recorded(5, modern(5, fail)), saw(0, recorded(7, modern(7, pass)))}, false},
		{"an old pass in another bundle, attached again, heals nothing",
			[]evidence.Claim{saw(2, recorded(3, modern(3, pass))), recorded(5, modern(5, fail)), saw(2, recorded(9, rewrapped(modern(3, pass))))}, false},
		{"an old report without the field, attached again, heals nothing",
			[]evidence.Claim{recorded(3, report(3, pass)), recorded(5, report(5, fail)), recorded(9, rewrapped(report(3, pass)))}, false},
		{"an old report attached late heals nothing", []evidence.Claim{recorded(5, report(5, fail)), recorded(9, report(3, pass))}, false},
		{"a report without the field heals what was recorded before it began", []evidence.Claim{recorded(5, report(5, fail)), recorded(9, report(9, pass))}, true},
		{"a report without the field that began before heals nothing", []evidence.Claim{recorded(2, report(2, fail)), recorded(9, slow)}, false},
		{"an old failure in another bundle, attached again, is no newer",
			[]evidence.Claim{recorded(3, modern(3, fail)), saw(3, recorded(5, modern(5, pass))), recorded(9, rewrapped(modern(3, fail)))}, true},
		{"an old failure in another bundle without a record is no newer", []evidence.Claim{rewrapped(modern(3, fail)), recorded(3, modern(3, fail)), saw(3, recorded(5, modern(5, pass)))}, true},
		{"a failure without a record is healed by a pass that began after it ended", []evidence.Claim{modern(5, fail), saw(5, recorded(7, modern(7, pass)))}, true},
		{"a failure without a record is not healed by a pass that began before it ended", []evidence.Claim{modern(7, fail), saw(5, recorded(7, modern(7, pass)))}, false},
		{"a report that cannot be read and without a record is not healed", []evidence.Claim{
			claim(evidence.PredicateParity, e.Digest, verifier, evidence.RoleVerifier, []int{1}), saw(5, recorded(7, modern(7, pass)))}, false},
		{"a pass without a record heals no recorded failure", []evidence.Claim{recorded(2, report(2, fail)), report(9, pass)}, false},
		{"without any history their own times decide", []evidence.Claim{report(5, fail), modern(7, pass)}, true},
		{"without any history their own times decide, the other way", []evidence.Claim{modern(7, fail), report(5, pass)}, false},
		{"a pass on another kind of hardware that saw the failure", []evidence.Claim{recorded(5, modern(5, fail)), saw(5, recorded(7, elsewhere))}, false},
		{"a report that cannot be read is healed by a pass that saw it", []evidence.Claim{
			recorded(5, claim(evidence.PredicateParity, e.Digest, verifier, evidence.RoleVerifier, []int{1})), saw(5, recorded(7, modern(7, pass)))}, true},
		{"a report that cannot be read is not healed by one that did not", []evidence.Claim{
			recorded(5, claim(evidence.PredicateParity, e.Digest, verifier, evidence.RoleVerifier, []int{1})), saw(4, recorded(7, modern(7, pass)))}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			claims := append(without(enough(r), is(evidence.PredicateParity, e.Digest)), c.claims...)
			for range 2 { // in both orders
				claims = append(claims[1:], claims[0])
				if got := unmet(strictest().Check(r, claims)); (got == "") != c.passes {
					t.Errorf("unmet is %q, want passed %t", got, c.passes)
				}
			}
		})
	}
}

// A report with a key in two spellings would mean different things to two readers.
func TestReportsInTwoSpellings(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[0]
	pass := parity(r, e, 1, evidence.VerdictPass, nil)
	both := pass
	both.Statement.Predicate = []byte(strings.Replace(string(pass.Statement.Predicate), `"verdict":"pass"`, `"verdict":"fail","Verdict":"pass"`, 1))
	claims := append(without(enough(r), is(evidence.PredicateParity, e.Digest)), both)
	if got := unmet(strictest().Check(r, claims)); !strings.Contains(got, `key "Verdict": want "verdict"`) {
		t.Errorf("unmet is %q, want the second spelling refused", got)
	}
}

func TestCheckNew(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[0]
	at := func(minutes int, c evidence.Claim) evidence.Claim { // recorded some minutes before hour 1, when the report says it ended
		c.RecordedAt = time.Date(2026, 1, 1, 1, -minutes, 0, 0, time.UTC)
		return c
	}
	retired := func(hour int, c evidence.Claim) evidence.Claim {
		return inState([]evidence.Claim{c}, c.Signer, evidence.KeyRetired, hour)[0]
	}
	nonsense := func(predicateType string, role evidence.Role) evidence.Claim {
		return claim(predicateType, e.Digest, "key", role, []int{1})
	}
	for name, c := range map[string]struct {
		claim evidence.Claim
		want  string // part of the error; empty: none
	}{
		"pass":                        {at(0, parity(r, e, 1, evidence.VerdictPass, nil)), ""},
		"pass five minutes ahead":     {at(5, parity(r, e, 1, evidence.VerdictPass, nil)), ""},
		"pass six minutes ahead":      {at(6, parity(r, e, 1, evidence.VerdictPass, nil)), "it says that it passed on 2026-01-01T01:00:00Z, but now it is 2026-01-01T00:54:00Z"},
		"figures six minutes ahead":   {at(6, performance(r, e, 1, evidence.VerdictRecorded)), "it says that it passed"},
		"failure six minutes ahead":   {at(6, parity(r, e, 1, evidence.VerdictFail, nil)), ""},
		"undecided six minutes ahead": {at(6, parity(r, e, 1, evidence.VerdictUndecided, nil)), ""},
		"unknown verdict":             {parity(r, e, 1, "passed", nil), `verdict "passed"`},
		"report":                      {nonsense(evidence.PredicateParity, evidence.RoleVerifier), "not a JSON object"},
		"quarantine":                  {nonsense(evidence.PredicateQuarantine, evidence.RoleApprover), "not a JSON object"},
		"summary":                     {nonsense(evidence.PredicateVSA, evidence.RolePromoter), "not a JSON object"},
		"unreadable approval":         {nonsense(evidence.PredicateApproval, evidence.RoleApprover), "not a JSON object"},
		"break-glass":                 {nonsense(evidence.PredicateBreakGlass, evidence.RoleApprover), "not a JSON object"},
		"approval":                    {approval(r, "first", 1, nil), ""},
		"approval that has expired":   {approval(r, "first", 2, func(a *evidence.Approval) { a.ExpiresOn = hours(2) }), "it expired on 2026-01-01T02:00:00Z"},
		"approval six minutes ahead":  {at(6, approval(r, "first", 1, nil)), "it says that it was given on 2026-01-01T01:00:00Z"},
		"what no rule reads":          {nonsense(evidence.PredicateTestResult, evidence.RoleVerifier), ""},
		"empty quarantine":            {quarantine(e.Digest), ""},
		"key retired later":           {at(0, retired(2, signature(e.Digest))), ""},
		"key retired":                 {at(0, retired(1, signature(e.Digest))), "was retired on 2026-01-01"},
		"pass that says it was made before its key was retired": {at(-180, retired(2, parity(r, e, 1, evidence.VerdictPass, nil))), "was retired on"},
		"failure by a retired key":                              {at(0, retired(1, parity(r, e, 1, evidence.VerdictFail, nil))), ""},
		"key revoked":                                           {at(0, inState([]evidence.Claim{signature(e.Digest)}, builder, evidence.KeyRevoked, 0)[0]), "is revoked"},
		"quarantine by a revoked key":                           {at(0, inState([]evidence.Claim{quarantine(e.Digest)}, approver, evidence.KeyRevoked, 0)[0]), ""},
	} {
		err := policy.CheckNew(c.claim)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !registry.HasCode(err, registry.CodeTrust)) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// Texts that others will read are checked before a claim is stored.
func TestCheckTexts(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[0]
	reasons := func(reasons ...evidence.Reason) evidence.Claim {
		return parity(r, e, 1, evidence.VerdictFail, func(p *evidence.ParityReport) { p.Reasons = reasons })
	}
	quarantined := func(reason string) evidence.Claim {
		return claim(evidence.PredicateQuarantine, e.Digest, approver, evidence.RoleApprover, evidence.Quarantine{Reason: reason})
	}
	const draws = "a\x1b[2J" // clears a terminal
	for name, c := range map[string]struct {
		claim evidence.Claim
		valid bool
	}{
		"a report without reasons":              {reasons(), true},
		"plain reasons":                         {reasons(evidence.Reason{Message: "too far", Code: "parity"}, evidence.Reason{Message: "too slow"}), true},
		"a message with a control character":    {reasons(evidence.Reason{Message: "too far"}, evidence.Reason{Message: draws}), false},
		"a code with a control character":       {reasons(evidence.Reason{Code: draws}), false},
		"an output with a control character":    {reasons(evidence.Reason{Output: draws}), false},
		"a figure with a control character":     {reasons(evidence.Reason{Figure: draws}), false},
		"a plain quarantine":                    {quarantined("it crashes"), true},
		"a quarantine with a control character": {quarantined(draws), false},
		"a plain approval":                      {approval(r, "first", 1, nil), true},
		"an approval with a control character":  {approval(r, "first", 1, func(a *evidence.Approval) { a.Comment = draws }), false},
		"a break-glass approval":                {breakGlass(r, "first", 9, nil), true},
		"a signature":                           {signature(e.Digest), true},
	} {
		if err := c.claim.CheckTexts(); (err == nil) != c.valid || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want valid %t", name, err, c.valid)
		}
	}
	broken := claim(evidence.PredicateBreakGlass, r.Digest, approver, evidence.RoleApprover,
		evidence.BreakGlass{ResourceURI: inProdOf, Skips: []string{"parity"}, Comment: draws, ApprovedOn: hours(1), ExpiresOn: hours(2)})
	if err := policy.CheckNew(broken); !registry.HasCode(err, registry.CodeTrust) {
		t.Errorf("a break-glass approval with a control character: error %v of CheckNew, want CodeTrust", err)
	}
}

// A report of a single case counts, and one that left out cases does not.
func TestCasesThatRan(t *testing.T) {
	t.Parallel()
	r := sample()
	for name, c := range map[string]struct {
		count, ran int
		counts     bool
	}{
		"one of one": {1, 1, true}, "ten of ten": {10, 10, true}, "nine of ten": {10, 9, false}, "none of none": {0, 0, false},
	} {
		claims := enough(r)
		for i, e := range r.Engines {
			report := parity(r, e, 1, evidence.VerdictPass, func(p *evidence.ParityReport) { p.Cases.Count, p.Cases.Ran = c.count, c.ran })
			claims = append(without(claims, is(evidence.PredicateParity, r.Engines[i].Digest)), report)
		}
		if d := (policy.Policy{Require: policy.DefaultRequire()}).Check(r, claims); d.Allowed() != c.counts {
			t.Errorf("%s: allowed is %t, want %t: %s", name, d.Allowed(), c.counts, unmet(d))
		}
	}
}

// A pass that compared with the engines of the destination counts only for a promotion that replaces
// the release that it compared with.
func TestComparedWithWhatIsReplaced(t *testing.T) {
	t.Parallel()
	r := sample()
	head, other := digest.FromString("head"), digest.FromString("other")
	with := func(hour int, environment string, release registry.Digest) evidence.Claim {
		return parity(r, r.Engines[1], hour, evidence.VerdictPass, func(p *evidence.ParityReport) {
			p.Destination = &evidence.Destination{Environment: environment, Release: evidence.NewDigestSet(release)}
		})
	}
	for name, c := range map[string]struct {
		head   registry.Digest
		claims []evidence.Claim
		want   string
	}{
		"with the head": {head, []evidence.Claim{with(2, "prod", head)}, ""},
		"with another": {head, []evidence.Claim{with(2, "prod", other)},
			"compared with release " + string(other) + " of prod, and prod has release " + string(head) + " now: run mlpromote verify again"},
		"with nothing":           {head, []evidence.Claim{with(2, "prod", "")}, "compared with no release of prod, and prod has release " + string(head)},
		"where there is nothing": {"", []evidence.Claim{with(2, "prod", "")}, ""},
		"with one that is gone":  {"", []evidence.Claim{with(2, "prod", other)}, "and prod has no release now"},
		"of another environment": {head, []evidence.Claim{with(2, "canary", head)}, "of canary, and prod has"},
		"with both":              {head, []evidence.Claim{with(2, "prod", head), with(3, "prod", other)}, ""},
		"with both, other first": {head, []evidence.Claim{with(3, "prod", other), with(2, "prod", head)}, ""},
		"another kind of machine": {head, []evidence.Claim{with(2, "prod", head), parity(r, r.Engines[1], 1, evidence.VerdictPass, func(p *evidence.ParityReport) {
			p.Node.CPU.Model = "second"
			p.Destination = &evidence.Destination{Environment: "prod", Release: evidence.NewDigestSet(other)}
		})}, "compared with release"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claims := append(without(enough(r), is(evidence.PredicateParity, r.Engines[1].Digest)), c.claims...)
			policy := strictest()
			policy.Promotion.Environment, policy.Promotion.Head = "prod", c.head
			if got := unmet(policy.Check(r, claims)); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("unmet %q, want %q", got, c.want)
			}
			again := strictest()
			again.Promotion.Replay = true
			if d := again.Check(r, claims); !d.Allowed() {
				t.Errorf("where it is there already: unmet %q, want nothing", unmet(d))
			}
		})
	}
}

// A requirement is named only if it is unmet by itself: a missing pass says nothing of cases and limits.
func TestReasonsStandByThemselves(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Engines = r.Engines[:1]
	e := r.Engines[0]
	none := without(enough(r), is(evidence.PredicateParity, e.Digest))
	with := func(origin string) []evidence.Claim {
		return append(slices.Clone(none), parity(r, e, 1, evidence.VerdictFail, func(p *evidence.ParityReport) { p.Cases.Origin = origin }))
	}
	compared := func(require ...string) policy.Policy {
		p := policy.Policy{Require: require}
		p.Promotion = policy.PromotionContext{Environment: "prod", Head: digest.FromString("head"), Comparison: &policy.Comparison{Version: "1.0.0"}}
		p.Promotion.Comparison.CountCases(policy.CasesShown(r, none), []policy.EngineCases{{Label: e.Label(), Precision: "fp32", Cases: 1373}})
		return p
	}
	recorded := policy.Policy{Require: []string{policy.RequireParity, policy.RequireRecordedCases}}
	for name, c := range map[string]struct {
		policy policy.Policy
		claims []evidence.Claim
		want   []string // names of what is unmet
	}{
		"recorded cases, and a failure":     {recorded, with(artifact.OriginRecorded), []string{"parity"}},
		"generated cases, and a failure":    {recorded, with(artifact.OriginGenerated), []string{"parity", "recorded-cases"}},
		"no report":                         {recorded, none, []string{"parity"}},
		"no report, and none is asked for":  {policy.Policy{Require: []string{policy.RequireRecordedCases}}, none, []string{"recorded-cases"}},
		"no limit is looser, and no report": {compared(policy.RequireParity, policy.RequireNoLooser), none, []string{"parity"}},
		"the same where none is asked for":  {compared(policy.RequireNoLooser), none, []string{"no-looser"}},
	} {
		var got []string
		for _, req := range c.policy.Check(r, c.claims).Unmet() {
			got = append(got, req.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: unmet %q, want %q", name, got, c.want)
		}
	}
}
