package registry_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// recorded is a claim that the history first names in a row. Rows are an hour apart.
func recorded(row int64, c registry.Claim) registry.Claim {
	c.Recorded, c.RecordedAt = row, time.Date(2026, 1, 1, int(row), 0, 0, 0, time.UTC)
	return c
}

// saw is a claim whose report names a row of the history. 0 stands for an unknown hash.
func saw(row int64, c registry.Claim) registry.Claim {
	c.Observed = row
	return c
}

// rewrapped is the same signed statement in another bundle.
func rewrapped(c registry.Claim) registry.Claim {
	c.Bundle = digest.FromString("another bundle of " + string(c.Bundle))
	return c
}

// The history orders reports. A pass heals only failures that its verifier could know of.
func TestOrderIsThatOfTheHistory(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[1]
	report := func(hour int, v registry.Verdict) registry.Claim { return parity(r, e, hour, v, nil) }
	// A modern report names the history that it saw. It took an hour and ended at this one.
	modern := func(hour int, v registry.Verdict) registry.Claim {
		return parity(r, e, hour, v, func(p *registry.ParityReport) { p.History = registry.NewDigestSet(digest.FromString("an event")) })
	}
	fail, pass := registry.VerdictFail, registry.VerdictPass
	far := func(v registry.Verdict) registry.Claim { // dated 2099
		return parity(r, e, 1, v, func(p *registry.ParityReport) { p.FinishedOn = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC) })
	}
	elsewhere := parity(r, e, 7, pass, func(p *registry.ParityReport) { p.Node.CPU.Model = "second" })
	slow := parity(r, e, 5, pass, func(p *registry.ParityReport) { p.StartedOn = p.StartedOn.Add(-4 * time.Hour) }) // from 0 to 5
	for _, c := range []struct {
		name   string
		claims []registry.Claim
		passes bool
	}{
		{"a failure that was recorded later stands, whatever it says of its time", []registry.Claim{recorded(5, modern(5, pass)), recorded(7, modern(2, fail))}, false},
		{"a pass dated 2099 does not count", []registry.Claim{recorded(5, far(pass))}, false},
		{"a pass dated 2099 hides no failure", []registry.Claim{recorded(3, report(3, pass)), recorded(5, far(pass)), recorded(7, modern(7, fail))}, false},
		{"a failure dated 2099 counts", []registry.Claim{recorded(3, report(3, pass)), recorded(5, far(fail))}, false},
		{"a failure dated 2099 is healed by a pass that saw it", []registry.Claim{recorded(5, far(fail)), saw(5, recorded(7, modern(7, pass)))}, true},
		{"a pass that saw the failure heals it", []registry.Claim{recorded(5, modern(5, fail)), saw(5, recorded(7, modern(7, pass)))}, true},
		{"a pass that saw more than the failure heals it", []registry.Claim{recorded(5, modern(5, fail)), saw(6, recorded(7, modern(7, pass)))}, true},
		{"a pass that began before the failure was recorded heals nothing", []registry.Claim{recorded(5, modern(5, fail)), saw(4, recorded(7, modern(7, pass)))}, false},
		{"a pass that names an unknown hash heals nothing", []registry.Claim{recorded(5, modern(5, fail)), saw(0, recorded(7, modern(7, pass)))}, false},
		{"an old pass in another bundle, attached again, heals nothing",
			[]registry.Claim{saw(2, recorded(3, modern(3, pass))), recorded(5, modern(5, fail)), saw(2, recorded(9, rewrapped(modern(3, pass))))}, false},
		{"an old report without the field, attached again, heals nothing",
			[]registry.Claim{recorded(3, report(3, pass)), recorded(5, report(5, fail)), recorded(9, rewrapped(report(3, pass)))}, false},
		{"an old report attached late heals nothing", []registry.Claim{recorded(5, report(5, fail)), recorded(9, report(3, pass))}, false},
		{"a report without the field heals what was recorded before it began", []registry.Claim{recorded(5, report(5, fail)), recorded(9, report(9, pass))}, true},
		{"a report without the field that began before heals nothing", []registry.Claim{recorded(2, report(2, fail)), recorded(9, slow)}, false},
		{"an old failure in another bundle, attached again, is no newer",
			[]registry.Claim{recorded(3, modern(3, fail)), saw(3, recorded(5, modern(5, pass))), recorded(9, rewrapped(modern(3, fail)))}, true},
		{"an old failure in another bundle without a record is no newer", []registry.Claim{rewrapped(modern(3, fail)), recorded(3, modern(3, fail)), saw(3, recorded(5, modern(5, pass)))}, true},
		{"a failure without a record is healed by a pass that began after it ended", []registry.Claim{modern(5, fail), saw(5, recorded(7, modern(7, pass)))}, true},
		{"a failure without a record is not healed by a pass that began before it ended", []registry.Claim{modern(7, fail), saw(5, recorded(7, modern(7, pass)))}, false},
		{"a report that cannot be read and without a record is not healed", []registry.Claim{
			claim(registry.PredicateParity, e.Digest, verifier, registry.RoleVerifier, []int{1}), saw(5, recorded(7, modern(7, pass)))}, false},
		{"a pass without a record heals no recorded failure", []registry.Claim{recorded(2, report(2, fail)), report(9, pass)}, false},
		{"without any history their own times decide", []registry.Claim{report(5, fail), modern(7, pass)}, true},
		{"without any history their own times decide, the other way", []registry.Claim{modern(7, fail), report(5, pass)}, false},
		{"a pass on another kind of hardware that saw the failure", []registry.Claim{recorded(5, modern(5, fail)), saw(5, recorded(7, elsewhere))}, false},
		{"a report that cannot be read is healed by a pass that saw it", []registry.Claim{
			recorded(5, claim(registry.PredicateParity, e.Digest, verifier, registry.RoleVerifier, []int{1})), saw(5, recorded(7, modern(7, pass)))}, true},
		{"a report that cannot be read is not healed by one that did not", []registry.Claim{
			recorded(5, claim(registry.PredicateParity, e.Digest, verifier, registry.RoleVerifier, []int{1})), saw(4, recorded(7, modern(7, pass)))}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			claims := append(without(enough(r), is(registry.PredicateParity, e.Digest)), c.claims...)
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
	pass := parity(r, e, 1, registry.VerdictPass, nil)
	both := pass
	both.Statement.Predicate = []byte(strings.Replace(string(pass.Statement.Predicate), `"verdict":"pass"`, `"verdict":"fail","Verdict":"pass"`, 1))
	claims := append(without(enough(r), is(registry.PredicateParity, e.Digest)), both)
	if got := unmet(strictest().Check(r, claims)); !strings.Contains(got, `key "Verdict": want "verdict"`) {
		t.Errorf("unmet is %q, want the second spelling refused", got)
	}
}

func TestCheckNew(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[0]
	at := func(minutes int, c registry.Claim) registry.Claim { // recorded some minutes before hour 1, when the report says it ended
		c.RecordedAt = time.Date(2026, 1, 1, 1, -minutes, 0, 0, time.UTC)
		return c
	}
	retired := func(hour int, c registry.Claim) registry.Claim {
		return inState([]registry.Claim{c}, c.Signer, registry.KeyRetired, hour)[0]
	}
	nonsense := func(predicateType string, role registry.Role) registry.Claim {
		return claim(predicateType, e.Digest, "key", role, []int{1})
	}
	for name, c := range map[string]struct {
		claim registry.Claim
		want  string // part of the error; empty: none
	}{
		"pass":                        {at(0, parity(r, e, 1, registry.VerdictPass, nil)), ""},
		"pass five minutes ahead":     {at(5, parity(r, e, 1, registry.VerdictPass, nil)), ""},
		"pass six minutes ahead":      {at(6, parity(r, e, 1, registry.VerdictPass, nil)), "it says that it passed on 2026-01-01T01:00:00Z, but now it is 2026-01-01T00:54:00Z"},
		"figures six minutes ahead":   {at(6, performance(r, e, 1, registry.VerdictRecorded)), "it says that it passed"},
		"failure six minutes ahead":   {at(6, parity(r, e, 1, registry.VerdictFail, nil)), ""},
		"undecided six minutes ahead": {at(6, parity(r, e, 1, registry.VerdictUndecided, nil)), ""},
		"unknown verdict":             {parity(r, e, 1, "passed", nil), `verdict "passed"`},
		"report":                      {nonsense(registry.PredicateParity, registry.RoleVerifier), "not a JSON object"},
		"quarantine":                  {nonsense(registry.PredicateQuarantine, registry.RoleApprover), "not a JSON object"},
		"summary":                     {nonsense(registry.PredicateVSA, registry.RolePromoter), "not a JSON object"},
		"unreadable approval":         {nonsense(registry.PredicateApproval, registry.RoleApprover), "not a JSON object"},
		"break-glass":                 {nonsense(registry.PredicateBreakGlass, registry.RoleApprover), "not a JSON object"},
		"approval":                    {approval(r, "first", 1, nil), ""},
		"approval that has expired":   {approval(r, "first", 2, func(a *registry.Approval) { a.ExpiresOn = hours(2) }), "it expired on 2026-01-01T02:00:00Z"},
		"approval six minutes ahead":  {at(6, approval(r, "first", 1, nil)), "it says that it was given on 2026-01-01T01:00:00Z"},
		"what no rule reads":          {nonsense(registry.PredicateTestResult, registry.RoleVerifier), ""},
		"empty quarantine":            {quarantine(e.Digest), ""},
		"key retired later":           {at(0, retired(2, signature(e.Digest))), ""},
		"key retired":                 {at(0, retired(1, signature(e.Digest))), "was retired on 2026-01-01"},
		"pass that says it was made before its key was retired": {at(-180, retired(2, parity(r, e, 1, registry.VerdictPass, nil))), "was retired on"},
		"failure by a retired key":                              {at(0, retired(1, parity(r, e, 1, registry.VerdictFail, nil))), ""},
		"key revoked":                                           {at(0, inState([]registry.Claim{signature(e.Digest)}, builder, registry.KeyRevoked, 0)[0]), "is revoked"},
		"quarantine by a revoked key":                           {at(0, inState([]registry.Claim{quarantine(e.Digest)}, approver, registry.KeyRevoked, 0)[0]), ""},
	} {
		err := c.claim.CheckNew()
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
	reasons := func(reasons ...registry.Reason) registry.Claim {
		return parity(r, e, 1, registry.VerdictFail, func(p *registry.ParityReport) { p.Reasons = reasons })
	}
	quarantined := func(reason string) registry.Claim {
		return claim(registry.PredicateQuarantine, e.Digest, approver, registry.RoleApprover, registry.Quarantine{Reason: reason})
	}
	const draws = "a\x1b[2J" // clears a terminal
	for name, c := range map[string]struct {
		claim registry.Claim
		valid bool
	}{
		"a report without reasons":              {reasons(), true},
		"plain reasons":                         {reasons(registry.Reason{Message: "too far", Code: "parity"}, registry.Reason{Message: "too slow"}), true},
		"a message with a control character":    {reasons(registry.Reason{Message: "too far"}, registry.Reason{Message: draws}), false},
		"a code with a control character":       {reasons(registry.Reason{Code: draws}), false},
		"an output with a control character":    {reasons(registry.Reason{Output: draws}), false},
		"a figure with a control character":     {reasons(registry.Reason{Figure: draws}), false},
		"a plain quarantine":                    {quarantined("it crashes"), true},
		"a quarantine with a control character": {quarantined(draws), false},
		"a plain approval":                      {approval(r, "first", 1, nil), true},
		"an approval with a control character":  {approval(r, "first", 1, func(a *registry.Approval) { a.Comment = draws }), false},
		"a break-glass approval":                {breakGlass(r, "first", 9, nil), true},
		"a signature":                           {signature(e.Digest), true},
	} {
		if err := c.claim.CheckTexts(); (err == nil) != c.valid || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want valid %t", name, err, c.valid)
		}
	}
	broken := claim(registry.PredicateBreakGlass, r.Digest, approver, registry.RoleApprover,
		registry.BreakGlass{ResourceURI: inProdOf, Skips: []string{"parity"}, Comment: draws, ApprovedOn: hours(1), ExpiresOn: hours(2)})
	if err := broken.CheckNew(); !registry.HasCode(err, registry.CodeTrust) {
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
			report := parity(r, e, 1, registry.VerdictPass, func(p *registry.ParityReport) { p.Cases.Count, p.Cases.Ran = c.count, c.ran })
			claims = append(without(claims, is(registry.PredicateParity, r.Engines[i].Digest)), report)
		}
		if d := (registry.Policy{Require: registry.DefaultRequire()}).Check(r, claims); d.Allowed() != c.counts {
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
	with := func(hour int, environment string, release registry.Digest) registry.Claim {
		return parity(r, r.Engines[1], hour, registry.VerdictPass, func(p *registry.ParityReport) {
			p.Destination = &registry.Destination{Environment: environment, Release: registry.NewDigestSet(release)}
		})
	}
	for name, c := range map[string]struct {
		head   registry.Digest
		claims []registry.Claim
		want   string
	}{
		"with the head": {head, []registry.Claim{with(2, "prod", head)}, ""},
		"with another": {head, []registry.Claim{with(2, "prod", other)},
			"compared with release " + string(other) + " of prod, and prod has release " + string(head) + " now: run mlpromote verify again"},
		"with nothing":           {head, []registry.Claim{with(2, "prod", "")}, "compared with no release of prod, and prod has release " + string(head)},
		"where there is nothing": {"", []registry.Claim{with(2, "prod", "")}, ""},
		"with one that is gone":  {"", []registry.Claim{with(2, "prod", other)}, "and prod has no release now"},
		"of another environment": {head, []registry.Claim{with(2, "canary", head)}, "of canary, and prod has"},
		"with both":              {head, []registry.Claim{with(2, "prod", head), with(3, "prod", other)}, ""},
		"with both, other first": {head, []registry.Claim{with(3, "prod", other), with(2, "prod", head)}, ""},
		"another kind of machine": {head, []registry.Claim{with(2, "prod", head), parity(r, r.Engines[1], 1, registry.VerdictPass, func(p *registry.ParityReport) {
			p.Node.CPU.Model = "second"
			p.Destination = &registry.Destination{Environment: "prod", Release: registry.NewDigestSet(other)}
		})}, "compared with release"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claims := append(without(enough(r), is(registry.PredicateParity, r.Engines[1].Digest)), c.claims...)
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
	none := without(enough(r), is(registry.PredicateParity, e.Digest))
	with := func(origin string) []registry.Claim {
		return append(slices.Clone(none), parity(r, e, 1, registry.VerdictFail, func(p *registry.ParityReport) { p.Cases.Origin = origin }))
	}
	compared := func(require ...string) registry.Policy {
		p := registry.Policy{Require: require}
		p.Promotion = registry.PromotionContext{Environment: "prod", Head: digest.FromString("head"), Comparison: &registry.Comparison{Version: "1.0.0"}}
		p.Promotion.Comparison.CountCases(registry.CasesShown(r, none), []registry.EngineCases{{Label: e.Label(), Precision: "fp32", Cases: 1373}})
		return p
	}
	recorded := registry.Policy{Require: []string{registry.RequireParity, registry.RequireRecordedCases}}
	for name, c := range map[string]struct {
		policy registry.Policy
		claims []registry.Claim
		want   []string // names of what is unmet
	}{
		"recorded cases, and a failure":     {recorded, with(registry.OriginRecorded), []string{"parity"}},
		"generated cases, and a failure":    {recorded, with(registry.OriginGenerated), []string{"parity", "recorded-cases"}},
		"no report":                         {recorded, none, []string{"parity"}},
		"no report, and none is asked for":  {registry.Policy{Require: []string{registry.RequireRecordedCases}}, none, []string{"recorded-cases"}},
		"no limit is looser, and no report": {compared(registry.RequireParity, registry.RequireNoLooser), none, []string{"parity"}},
		"the same where none is asked for":  {compared(registry.RequireNoLooser), none, []string{"no-looser"}},
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
