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

// breakGlass is a break-glass approval that a key gave at an hour, recorded in that row: to skip
// accuracy over the release "head", for four hours.
func breakGlass(r artifact.Release, key string, hour int, edit func(*evidence.BreakGlass)) evidence.Claim {
	b := evidence.BreakGlass{
		ResourceURI: inProdOf, Replaces: evidence.NewDigestSet(digest.FromString("head")), Skips: []string{"accuracy"},
		Comment: "prod is down", ApprovedOn: hours(hour), ExpiresOn: hours(hour + 4),
	}
	if edit != nil {
		edit(&b)
	}
	c := claim(evidence.PredicateBreakGlass, r.Digest, key, evidence.RoleApprover, b)
	c.Keys = []string{"keys/" + key + ".pub"}
	c.RecordedAt = hours(hour)
	return recorded(int64(hour), c)
}

// builderNamed is the signature of a second builder, whose key has a name.
func builderNamed(r artifact.Release, name string) evidence.Claim {
	c := claim(evidence.PredicateSign, r.Digest, "another-builder", evidence.RoleBuilder, struct{}{})
	c.Keys = []string{name}
	return c
}

// emergency is a policy at noon, over a head that moved at event 5, whose accuracy no release here shows.
func emergency() policy.Policy {
	atLeast := evidence.Figure(0.9)
	return policy.Policy{
		Require: []string{"signature", "parity", "accuracy"}, Accuracy: &policy.AccuracyRequirement{Metric: "top1", Min: &atLeast},
		BreakGlass: []string{"parity", "accuracy", "approvals"},
		Promotion: policy.PromotionContext{Environment: "prod", Head: digest.FromString("head"), Resource: inProdOf,
			Now: hours(12), Newest: hours(11), BreakGlass: true, HeadMoved: 5},
	}
}

func TestBreakGlass(t *testing.T) {
	t.Parallel()
	r := sample()
	skips := func(names ...string) func(*evidence.BreakGlass) {
		return func(b *evidence.BreakGlass) { b.Skips = names }
	}
	change := func(c evidence.Claim, edit func(*evidence.Claim)) evidence.Claim {
		edit(&c)
		return c
	}
	first, second := breakGlass(r, "first", 9, nil), breakGlass(r, "second", 10, nil)
	both := []evidence.Claim{first, second}
	groups := policy.ApprovalRule{Groups: []policy.ApproverGroup{
		{Name: "a", Count: 1, Keys: []string{"keys/first.pub", "keys/second.pub"}}, {Name: "b", Count: 1, Keys: []string{"keys/third.pub"}}}}
	grouped := func(p *policy.Policy) { p.Approvals.Groups = groups.Groups }
	held := func(keys ...string) func(*policy.Policy) {
		return func(p *policy.Policy) {
			p.Approvals.Attested = &policy.AttestedRule{Max: 1, People: []policy.ListedPerson{{Token: "ana", Keys: keys}}}
		}
	}
	built := builderNamed(r, "keys/build.pub")
	for name, c := range map[string]struct {
		claims []evidence.Claim
		edit   func(*policy.Policy)
		want   string // of the refusal; empty: it is promoted
	}{
		"two approvers":               {both, nil, ""},
		"in any order of their lists": {[]evidence.Claim{breakGlass(r, "first", 9, skips("accuracy", "parity")), breakGlass(r, "second", 9, skips("parity", "accuracy"))}, nil, ""},
		"without being asked to":      {both, func(p *policy.Policy) { p.Promotion.BreakGlass = false }, "accuracy of x86/fp32"},
		"without approvers": {nil, nil,
			"missing: 2 approvers who agree to skip the same: each runs mlpromote approve vision/digits:1.0.0 --env prod --break-glass --skip accuracy --comment TEXT"},
		"one approver":                  {both[:1], nil, "1 of 2 approved to skip accuracy"},
		"one approver, twice":           {[]evidence.Claim{first, breakGlass(r, "first", 10, nil)}, nil, "1 of 2 approved"},
		"one statement in two bundles":  {[]evidence.Claim{first, change(first, func(c *evidence.Claim) { c.Bundle = digest.FromString("copy") })}, nil, "1 of 2 approved"},
		"two keys of one group":         {both, grouped, "1 of 2 approved"},
		"keys of two groups":            {[]evidence.Claim{first, breakGlass(r, "third", 9, nil)}, grouped, ""},
		"a key of a group, and of none": {[]evidence.Claim{first, breakGlass(r, "fourth", 9, nil)}, grouped, ""},
		"two keys of one person":        {both, held("keys/first.pub", "keys/second.pub"), "1 of 2 approved"},
		"two keys of one person, of whom one is in a group": {[]evidence.Claim{first, breakGlass(r, "fourth", 9, nil)},
			func(p *policy.Policy) { grouped(p); held("keys/first.pub", "keys/fourth.pub")(p) }, "1 of 2 approved"},
		"a key of a group, and one of a person who holds another of it": {[]evidence.Claim{second, breakGlass(r, "fourth", 9, nil)},
			func(p *policy.Policy) { grouped(p); held("keys/first.pub", "keys/fourth.pub")(p) }, "1 of 2 approved"},
		"keys of two groups of which one person has one each": {[]evidence.Claim{first, breakGlass(r, "third", 9, nil)},
			func(p *policy.Policy) { grouped(p); held("keys/second.pub", "keys/third.pub")(p) }, "1 of 2 approved"},
		"a person and somebody else": {both, held("keys/first.pub", "keys/fourth.pub"), ""},
		"the other key of who signed the build": {[]evidence.Claim{first, second, built}, held("keys/second.pub", "keys/build.pub"),
			"keys/second.pub does not count: it, or another key that the same person may hold, signed the build"},
		"who published the build": {both, func(p *policy.Policy) {
			held("keys/second.pub")(p)
			p.Promotion.Publishers = []evidence.Person{{Principal: "token:ana", Token: "ana"}}
		}, "keys/second.pub does not count: it, or another key that the same person may hold, signed the build"},
		"a key of the group of who signed the build": {[]evidence.Claim{breakGlass(r, "fourth", 9, nil), second, builderNamed(r, "keys/first.pub")}, grouped,
			"keys/second.pub does not count"},
		"other lists":                  {[]evidence.Claim{first, breakGlass(r, "second", 10, skips("accuracy", "parity"))}, nil, "1 of 2 approved to skip accuracy"},
		"a list without what is unmet": {[]evidence.Claim{breakGlass(r, "first", 9, skips("parity")), breakGlass(r, "second", 9, skips("parity"))}, nil, "accuracy of x86/fp32"},
		"what may not be skipped here": {both, func(p *policy.Policy) { p.BreakGlass = []string{"parity"} }, "prod does not let accuracy be skipped"},
		"nothing may be skipped here":  {both, func(p *policy.Policy) { p.BreakGlass = nil }, "prod lets no requirement be skipped"},
		"ordinary approvals":           {[]evidence.Claim{approval(r, "first", 9, nil), approval(r, "second", 9, nil)}, nil, "missing: 2 approvers"},
		"for another environment":      {[]evidence.Claim{first, breakGlass(r, "second", 10, func(b *evidence.BreakGlass) { b.ResourceURI = "oci://local/edge/vision/digits" })}, nil, "1 of 2"},
		"for another model":            {[]evidence.Claim{first, breakGlass(r, "second", 10, func(b *evidence.BreakGlass) { b.ResourceURI += "2" })}, nil, "1 of 2"},
		"of another release":           {[]evidence.Claim{first, change(second, func(c *evidence.Claim) { c.Subject = digest.FromString("another") })}, nil, "1 of 2"},
		"of a statement about another": {[]evidence.Claim{first, change(second, func(c *evidence.Claim) {
			c.Statement.Subject = []evidence.StatementSubject{{Digest: evidence.NewDigestSet(digest.FromString("x"))}}
		})}, nil, "1 of 2"},
		"over another head": {both, func(p *policy.Policy) { p.Promotion.Head = digest.FromString("moved") },
			"it is for a promotion that replaces release " + string(digest.FromString("head"))},
		"over no head": {both, func(p *policy.Policy) { p.Promotion.Head, p.Promotion.HeadMoved = "", 0 }, "it is for a promotion that replaces"},
		"where there was no head": {[]evidence.Claim{first, breakGlass(r, "second", 10, func(b *evidence.BreakGlass) { b.Replaces = nil })}, nil,
			"it is for a promotion that replaces no release"},
		"the head was back meanwhile":    {both, func(p *policy.Policy) { p.Promotion.HeadMoved = 10 }, "the head was moved after it was given"},
		"when the head moved is unknown": {both, func(p *policy.Policy) { p.Promotion.HeadMoved = 0 }, "the head was moved after it was given"},
		"its last second":                {both, func(p *policy.Policy) { p.Promotion.Now = hours(13).Add(-1) }, ""},
		"expired":                        {both, func(p *policy.Policy) { p.Promotion.Now = hours(13) }, "it expired on 2026-01-01T13:00:00Z"},
		"at no time":                     {both, func(p *policy.Policy) { p.Promotion.Now = time.Time{} }, "the time of the promotion is not known"},
		"with a clock turned back":       {both, func(p *policy.Policy) { p.Promotion.Newest = hours(13) }, "the newest event of the history is of"},
		"signed for a day to come": {[]evidence.Claim{first, breakGlass(r, "second", 10,
			func(b *evidence.BreakGlass) { b.ApprovedOn, b.ExpiresOn = hours(48), hours(71) })},
			func(p *policy.Policy) { p.Promotion.Now, p.Promotion.Newest = hours(50), hours(50) }, "it expired on 2026-01-02T10:00:00Z"},
		"unrecorded":       {[]evidence.Claim{first, change(second, func(c *evidence.Claim) { c.Recorded = 0 })}, nil, "the history does not have it"},
		"of a stranger":    {[]evidence.Claim{first, change(second, func(c *evidence.Claim) { c.Roles = []evidence.Role{evidence.RoleVerifier} })}, nil, "1 of 2"},
		"of a revoked key": {[]evidence.Claim{first, change(second, func(c *evidence.Claim) { c.Key = evidence.KeyRevoked })}, nil, "1 of 2"},
		"of a builder":     {[]evidence.Claim{first, change(second, func(c *evidence.Claim) { c.Signer = builder })}, nil, "keys/second.pub does not count: it, or another key that the same person may hold, signed the build"},
		"taken back": {append(slices.Clone(both), approval(r, "second", 11, func(a *evidence.Approval) { a.Withdrawn = true })), nil,
			"keys/second.pub does not count: it was taken back"},
		"given again":  {append(slices.Clone(both), approval(r, "second", 8, func(a *evidence.Approval) { a.Withdrawn = true })), nil, ""},
		"a quarantine": {append(slices.Clone(both), quarantine(r.Engines[0].Digest)), nil, "no-quarantine of x86/fp32"},
		"a failing report": {append(slices.Clone(both), recorded(9, parity(r, r.Engines[0], 9, evidence.VerdictFail, nil)),
			breakGlass(r, "first", 10, skips("parity", "accuracy")), breakGlass(r, "second", 11, skips("parity", "accuracy"))), nil, "no-failure of x86/fp32"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := emergency()
			if c.edit != nil {
				c.edit(&p)
			}
			d := p.Check(r, append(enough(r), c.claims...))
			if got := unmet(d); d.Allowed() != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet %q, want %q", got, c.want)
			}
			if d.Allowed() && (d.Skipped == nil || !slices.Equal(d.Skipped.Requirements, []string{"accuracy"}) ||
				len(d.Skipped.Approvers) != 2 || d.Until.After(hours(13)) || d.Until.IsZero()) {
				t.Errorf("skipped %+v, until %s, want accuracy by two, until the first expires", d.Skipped, d.Until)
			}
		})
	}
}

// Without a signature nothing is promoted, whoever agrees.
func TestBreakGlassNeedsSignatures(t *testing.T) {
	t.Parallel()
	r := sample()
	unsigned := slices.DeleteFunc(enough(r), func(c evidence.Claim) bool {
		return c.Statement.PredicateType == evidence.PredicateSign && c.Subject == r.Engines[0].Digest
	})
	d := emergency().Check(r, append(unsigned, breakGlass(r, "first", 9, nil), breakGlass(r, "second", 9, nil)))
	if got := unmet(d); d.Allowed() || !strings.Contains(got, "signature of x86/fp32") {
		t.Errorf("unmet %q, want the signature", got)
	}
}

// What meets all requirements is promoted as always, and nothing is said to be skipped.
func TestBreakGlassWithoutNeed(t *testing.T) {
	t.Parallel()
	r := sample()
	p := emergency()
	p.Require, p.Accuracy = []string{"signature", "parity"}, nil
	d := p.Check(r, append(enough(r), breakGlass(r, "first", 9, nil), breakGlass(r, "second", 9, nil)))
	if !d.Allowed() || d.Skipped != nil || slices.ContainsFunc(d.Requirements,
		func(r policy.Requirement) bool { return r.Name == "break-glass" || r.Skipped }) {
		t.Errorf("%+v, want a promotion as always", d)
	}
}

func TestBreakGlassIsValid(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(*evidence.BreakGlass){
		"":                               func(b *evidence.BreakGlass) { b.ExpiresOn = b.ApprovedOn.Add(evidence.MaxBreakGlass) },
		"it skips nothing":               func(b *evidence.BreakGlass) { b.Skips = nil },
		`"signature" cannot be skipped`:  func(b *evidence.BreakGlass) { b.Skips = []string{"parity", "signature"} },
		`"no-quarantine" cannot be`:      func(b *evidence.BreakGlass) { b.Skips = []string{"no-quarantine"} },
		`"parity": listed twice`:         func(b *evidence.BreakGlass) { b.Skips = []string{"parity", "parity"} },
		"want it to expire at most 24h":  func(b *evidence.BreakGlass) { b.ExpiresOn = b.ApprovedOn.Add(evidence.MaxBreakGlass + 1) },
		"want it to expire at most":      func(b *evidence.BreakGlass) { b.ExpiresOn = time.Time{} },
		"which is not after":             func(b *evidence.BreakGlass) { b.ExpiresOn = b.ApprovedOn },
		"want a comment":                 func(b *evidence.BreakGlass) { b.Comment = "" },
		"resource":                       func(b *evidence.BreakGlass) { b.ResourceURI = "prod" },
		"has no SHA-256 digest":          func(b *evidence.BreakGlass) { b.Replaces = evidence.DigestSet{"sha512": "00"} },
		"the time of the approval is mi": func(b *evidence.BreakGlass) { b.ApprovedOn, b.ExpiresOn = time.Time{}, time.Time{}.Add(time.Hour) },
	} {
		b := evidence.BreakGlass{ResourceURI: inProdOf, Skips: []string{"parity"}, Comment: "x", ApprovedOn: hours(1), ExpiresOn: hours(2)}
		edit(&b)
		if _, err := policy.NewBreakGlass(evidence.StatementSubject{}, b); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", b, err, want)
		}
	}
}

// What an event says of a promotion is one line within the limit of texts, whatever approvers wrote.
func TestSkippedText(t *testing.T) {
	t.Parallel()
	s := evidence.Skipped{Requirements: policy.Skippable(), Approvers: []string{"a", "b"}, Comments: []string{strings.Repeat("ü\n", 600), "x"}}
	if err := registry.ValidateText("reason", s.String()); err != nil || !strings.HasSuffix(s.String(), "…") {
		t.Errorf("%q: %v", s, err)
	}
}

// Approvers skip requirements by name. So what only the requirement parity says elsewhere, each says by itself where they are skipped.
func TestBreakGlassNamesWhatRestsOnAPass(t *testing.T) {
	t.Parallel()
	r := sample()
	claims := without(enough(r), is(evidence.PredicateParity, r.Engines[0].Digest))
	for _, breakGlass := range []bool{false, true} {
		p := policy.Policy{Require: append(policy.DefaultRequire(), policy.RequireRecordedCases)}
		p.Promotion.BreakGlass = breakGlass
		unmet := slices.ContainsFunc(p.Check(r, claims).Unmet(), func(req policy.Requirement) bool {
			return req.Name == policy.RequireRecordedCases && req.Subject == r.Engines[0].Label()
		})
		if unmet != breakGlass {
			t.Errorf("break-glass %t: without a report, recorded-cases is unmet: %t", breakGlass, unmet)
		}
	}
}
