package policy_test

import (
	"encoding/json"
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

// inProdOf is the resource for which the approvals of these tests are.
const inProdOf = "oci://local/prod/vision/digits"

// hours is an hour of the fixture's day.
func hours(hour int) time.Time { return time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }

// approval is one that a key gave at an hour, recorded in that row, changed by edit.
func approval(r artifact.Release, key string, hour int, edit func(*evidence.Approval)) evidence.Claim {
	a := evidence.Approval{ResourceURI: inProdOf, Comment: "tried it", ApprovedOn: hours(hour), History: evidence.NewDigestSet(digest.FromString("an event"))}
	if edit != nil {
		edit(&a)
	}
	c := claim(evidence.PredicateApproval, r.Digest, key, evidence.RoleApprover, a)
	c.Keys = []string{"keys/" + key + ".pub"}
	return saw(1, recorded(int64(hour), c))
}

// Two registries can have one name. An approval counts in the one whose history it names.
func TestApprovalsOfOneRegistry(t *testing.T) {
	t.Parallel()
	r := sample()
	for name, c := range map[string]struct {
		registry string
		event    bool // that the approval names
		observed int64
		counts   bool
	}{
		"an event of it":                     {"local", true, 3, true},
		"an event of another":                {"local", true, 0, false},
		"by another tool":                    {"local", false, 0, false},
		"by another tool, with a name":       {"acme", false, 0, true},
		"an event of another, with its name": {"acme", true, 0, false},
		"an event of it, with a name":        {"acme", true, 3, true},
	} {
		p := asking(1)
		p.Promotion.Resource = "oci://" + c.registry + "/prod/vision/digits"
		given := approval(r, "first", 1, func(a *evidence.Approval) {
			if a.ResourceURI = p.Promotion.Resource; !c.event {
				a.History = nil
			}
		})
		given.Observed = c.observed
		got := unmet(p.Check(r, append(enough(r), given)))
		if (got == "") != c.counts || !c.counts && !strings.Contains(got, "names no event of this registry's history") {
			t.Errorf("%s: unmet %q, want that it counts: %t", name, got, c.counts)
		}
	}
}

// withdrawal takes back what a key approved before an hour.
func withdrawal(r artifact.Release, key string, hour int) evidence.Claim {
	return approval(r, key, hour, func(a *evidence.Approval) { a.Withdrawn = true })
}

// asking is a policy that asks for approvals at noon.
func asking(count int, groups ...policy.ApproverGroup) policy.Policy {
	return policy.Policy{
		Require: policy.DefaultRequire(), Approvals: policy.ApprovalRule{Count: count, Groups: groups},
		Promotion: policy.PromotionContext{Environment: "prod", Resource: inProdOf, Now: hours(12)},
	}
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	r := sample()
	first, second, third := approval(r, "first", 1, nil), approval(r, "second", 2, nil), approval(r, "third", 3, nil)
	edit := func(c evidence.Claim, change func(*evidence.Claim)) evidence.Claim {
		change(&c)
		return c
	}
	expires := func(key string, at time.Time) evidence.Claim {
		return approval(r, key, 4, func(a *evidence.Approval) { a.ExpiresOn = at })
	}
	raw := func(c evidence.Claim, predicate string) evidence.Claim {
		c.Statement.Predicate, c.Bundle = json.RawMessage(predicate), digest.FromString(predicate)
		return c
	}
	signedBy := func(c evidence.Claim, key string, roles ...evidence.Role) evidence.Claim {
		c.Signer, c.Roles = key, roles
		return c
	}
	elsewhere := func(resource string) evidence.Claim {
		return approval(r, "second", 2, func(a *evidence.Approval) { a.ResourceURI = resource })
	}
	for _, c := range []struct {
		name   string
		claims []evidence.Claim
		want   string // part of what is unmet; empty: all is met
	}{
		{"two people", []evidence.Claim{first, second}, ""},
		{"three people", []evidence.Claim{first, second, third}, ""},
		{"none", nil, "approvals of release: missing: 2 of 2 approvals: another approver runs mlpromote approve vision/digits:1.0.0 --env prod --comment TEXT"},
		{"one", []evidence.Claim{first}, "approved by keys/first.pub; missing: 1 of 2 approvals:"},
		{"one person twice", []evidence.Claim{first, approval(r, "first", 2, nil)}, "missing: 1 of 2"},
		{"one statement in two bundles", []evidence.Claim{first, rewrapped(first)}, "missing: 1 of 2"},
		{"a verifier's word", []evidence.Claim{first, edit(second, func(c *evidence.Claim) { c.Roles = []evidence.Role{evidence.RoleVerifier} })}, "missing: 1 of 2"},
		{"no role", []evidence.Claim{first, edit(second, func(c *evidence.Claim) { c.Roles = nil })}, "missing: 1 of 2"},
		{"a builder of the release", []evidence.Claim{first, signedBy(second, builder, evidence.RoleApprover, evidence.RoleBuilder)}, "keys/second.pub signed the build, so it cannot approve"},
		{"a builder of an engine, whose signature does not count", []evidence.Claim{first, second,
			signedBy(signature(r.Engines[1].Digest), "second", evidence.RoleApprover)}, "keys/second.pub signed the build"},
		{"a builder of the provenance, with a revoked key", []evidence.Claim{first, second,
			edit(signedBy(provenance(r.Engines[0].Digest), "second"), func(c *evidence.Claim) { c.Key = evidence.KeyRevoked })},
			"keys/second.pub signed the build"},
		{"a builder of something else", []evidence.Claim{first, second, signedBy(signature(digest.FromString("another")), "second", evidence.RoleBuilder)}, ""},
		{"a verifier of the release", []evidence.Claim{first, signedBy(second, verifier, evidence.RoleApprover, evidence.RoleVerifier)}, ""},
		{"for staging", []evidence.Claim{first, elsewhere("oci://local/staging/vision/digits")}, "missing: 1 of 2"},
		{"for a model below", []evidence.Claim{first, elsewhere(inProdOf + "/small")}, "missing: 1 of 2"},
		{"for the environment", []evidence.Claim{first, elsewhere("oci://local/prod/")}, "missing: 1 of 2"},
		{"for no resource", []evidence.Claim{first, raw(second, `{"comment":"x","approvedOn":"2026-01-01T02:00:00Z"}`)}, "missing: 1 of 2"},
		{"of another release", []evidence.Claim{first, edit(second, func(c *evidence.Claim) { c.Subject = digest.FromString("another") })}, "missing: 1 of 2"},
		{"of an engine alone", []evidence.Claim{first, edit(second, func(c *evidence.Claim) {
			c.Subject = r.Engines[0].Digest
			c.Statement.Subject = []evidence.StatementSubject{{Digest: evidence.NewDigestSet(c.Subject)}}
		})}, "missing: 1 of 2"},
		{"attached to this release, about another", []evidence.Claim{first, edit(second, func(c *evidence.Claim) {
			c.Statement.Subject = []evidence.StatementSubject{{Digest: evidence.NewDigestSet(digest.FromString("another"))}}
		})}, "missing: 1 of 2"},
		{"a second before it expires", []evidence.Claim{first, expires("second", hours(12).Add(time.Second))}, ""},
		{"the instant at which it expires", []evidence.Claim{first, expires("second", hours(12))}, "that of keys/second.pub expired on 2026-01-01T12:00:00Z"},
		{"expired", []evidence.Claim{first, expires("second", hours(5))}, "expired on 2026-01-01T05:00:00Z"},
		{"expired, and given again", []evidence.Claim{first, expires("second", hours(5)), approval(r, "second", 6, nil)}, ""},
		{"expires before it is given", []evidence.Claim{first, expires("second", hours(3))}, "missing: 1 of 2"},
		{"withdrawn", []evidence.Claim{first, second, withdrawal(r, "second", 5)}, "keys/second.pub took its approval back"},
		{"withdrawn, in the other order", []evidence.Claim{withdrawal(r, "second", 5), second, first}, "took its approval back"},
		{"withdrawn by another", []evidence.Claim{first, second, withdrawal(r, "third", 5)}, ""},
		{"withdrawn and given again", []evidence.Claim{first, second, withdrawal(r, "second", 5), approval(r, "second", 6, nil)}, ""},
		{"given again, and the withdrawal in another bundle", []evidence.Claim{first, second, withdrawal(r, "second", 5), approval(r, "second", 6, nil),
			recorded(7, rewrapped(withdrawal(r, "second", 5)))}, ""},
		{"withdrawn, and the approval in another bundle", []evidence.Claim{first, second, withdrawal(r, "second", 5), recorded(6, rewrapped(second))}, "took its approval back"},
		{"withdrawn, and the history names neither", []evidence.Claim{first, recorded(0, second), recorded(0, withdrawal(r, "second", 1))}, "took its approval back"},
		{"withdrawn, and the history does not name the later approval", []evidence.Claim{first, withdrawal(r, "second", 5), recorded(0, approval(r, "second", 6, nil))}, "took its approval back"},
		{"withdrawn for another resource", []evidence.Claim{first, second, approval(r, "second", 5, func(a *evidence.Approval) {
			a.ResourceURI, a.Withdrawn = "oci://local/edge/vision/digits", true
		})}, ""},
		{"withdrawn by what cannot be read", []evidence.Claim{first, second, recorded(5, raw(second, `{"withdrawn":"yes"}`))}, "took its approval back"},
		{"a withdrawal of a retired key", []evidence.Claim{first, second, edit(withdrawal(r, "second", 5), func(c *evidence.Claim) {
			c.Key, c.RetiredAt = evidence.KeyRetired, hours(4)
		})}, "took its approval back"},
		{"two keys in one spelling", []evidence.Claim{first, raw(second, `{"resourceUri":"`+inProdOf+`","Withdrawn":false,"comment":"x","approvedOn":"2026-01-01T02:00:00Z"}`)}, "missing: 1 of 2"},
		{"a key twice", []evidence.Claim{first, raw(second, `{"resourceUri":"`+inProdOf+`","resourceUri":"`+inProdOf+`","comment":"x","approvedOn":"2026-01-01T02:00:00Z"}`)}, "missing: 1 of 2"},
		{"in quarantine all the same", []evidence.Claim{first, second, quarantine(r.Digest)}, "no-quarantine of release"},
		{"a failing report later", []evidence.Claim{first, second, recorded(9, parity(r, r.Engines[0], 9, evidence.VerdictFail, nil))}, "parity of x86/fp32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := asking(2).Check(r, append(enough(r), c.claims...))
			if got := unmet(d); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet is %q, want %q", got, c.want)
			}
		})
	}
}

// A key that was replaced leaves what it approved in time; a stolen one leaves nothing.
func TestApprovalsOfKeyStates(t *testing.T) {
	t.Parallel()
	r := sample()
	claims := append(all(enough(r)), approval(r, "first", 3, nil))
	for name, c := range map[string]struct {
		state   evidence.KeyState
		hour    int
		allowed bool
	}{
		"trusted":             {evidence.KeyTrusted, 0, true},
		"retired after":       {evidence.KeyRetired, 4, true},
		"retired at the time": {evidence.KeyRetired, 3, false},
		"retired before":      {evidence.KeyRetired, 2, false},
		"revoked":             {evidence.KeyRevoked, 0, false},
		"in no state":         {"", 0, false},
	} {
		if got := asking(1).Check(r, inState(claims, "first", c.state, c.hour)).Allowed(); got != c.allowed {
			t.Errorf("%s: allowed is %t, want %t", name, got, c.allowed)
		}
	}
}

// A policy that does not know where or when it decides refuses.
func TestApprovalsNeedResourceAndTime(t *testing.T) {
	t.Parallel()
	r := sample()
	lasting := append(enough(r), approval(r, "first", 1, nil))
	expiring := append(enough(r), approval(r, "first", 1, func(a *evidence.Approval) { a.ExpiresOn = hours(23) }))
	for name, c := range map[string]struct {
		claims  []evidence.Claim
		edit    func(*policy.Policy)
		allowed bool
	}{
		"as it was":               {lasting, func(*policy.Policy) {}, true},
		"no resource":             {lasting, func(p *policy.Policy) { p.Promotion.Resource = "" }, false},
		"no time":                 {lasting, func(p *policy.Policy) { p.Promotion.Now = time.Time{} }, true},
		"expires later":           {expiring, func(*policy.Policy) {}, true},
		"expires, and no time":    {expiring, func(p *policy.Policy) { p.Promotion.Now = time.Time{} }, false},
		"asks for nothing":        {enough(r), func(p *policy.Policy) { p.Approvals = policy.ApprovalRule{} }, true},
		"approvals do no harm":    {expiring, func(p *policy.Policy) { p.Approvals = policy.ApprovalRule{} }, true},
		"approvals prove nothing": {lasting[1:], func(*policy.Policy) {}, false},
	} {
		p := asking(1)
		c.edit(&p)
		if d := p.Check(r, c.claims); d.Allowed() != c.allowed {
			t.Errorf("%s: allowed is %t, want %t: %s", name, d.Allowed(), c.allowed, unmet(d))
		}
	}
}

func TestApprovalsOfGroups(t *testing.T) {
	t.Parallel()
	r := sample()
	group := func(name string, count int, keys ...string) policy.ApproverGroup {
		return policy.ApproverGroup{Name: name, Count: count, Keys: keys}
	}
	managers, security := group("managers", 1, "keys/first.pub", "keys/second.pub"), group("security", 1, "keys/third.pub")
	under := func(c evidence.Claim, paths ...string) evidence.Claim {
		c.Keys = paths
		return c
	}
	first, second, third, dora := approval(r, "first", 1, nil), approval(r, "second", 2, nil), approval(r, "third", 3, nil), approval(r, "dora", 4, nil)
	for _, c := range []struct {
		name   string
		policy policy.Policy
		claims []evidence.Claim
		want   string
	}{
		{"one of each", asking(2, managers, security), []evidence.Claim{first, third}, ""},
		{"two of one", asking(2, managers, security), []evidence.Claim{first, second}, "missing: 1 of security (keys/third.pub)"},
		{"somebody of no group", asking(2, managers, security), []evidence.Claim{first, dora}, "missing: 1 of security"},
		{"one more of no group", asking(3, managers, security), []evidence.Claim{first, third, dora}, ""},
		{"one more of no group is missing", asking(3, managers, security), []evidence.Claim{first, third}, "missing: 1 of 3 approvals"},
		{"two of a group", asking(2, group("managers", 2, "keys/first.pub", "keys/second.pub")), []evidence.Claim{first, second}, ""},
		{"one twice", asking(2, group("managers", 2, "keys/first.pub", "keys/second.pub")), []evidence.Claim{first, approval(r, "first", 5, nil)}, "missing: 1 of managers"},
		{"one key in two groups under two paths", asking(2, managers, security), []evidence.Claim{under(first, "keys/first.pub", "keys/third.pub"), dora}, "missing: 1 of security"},
		{"a key without a path", asking(2, managers, security), []evidence.Claim{under(first), third}, "missing: 1 of managers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := unmet(c.policy.Check(r, append(enough(r), c.claims...)))
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet is %q, want %q", got, c.want)
			}
		})
	}
}

func TestApprovalRuleRefuses(t *testing.T) {
	t.Parallel()
	group := func(name string, count int, keys ...string) policy.ApproverGroup {
		return policy.ApproverGroup{Name: name, Count: count, Keys: keys}
	}
	for _, c := range []struct {
		rule policy.ApprovalRule
		want string
	}{
		{policy.ApprovalRule{}, ""},
		{policy.ApprovalRule{Count: 100}, ""},
		{policy.ApprovalRule{Count: 2, Groups: []policy.ApproverGroup{group("a", 1, "k"), group("b", 1, "l")}}, ""},
		{policy.ApprovalRule{Count: -1}, "count -1: want 1 to 100"},
		{policy.ApprovalRule{Count: 101}, "count 101: want 1 to 100"},
		{policy.ApprovalRule{Count: 1, Groups: []policy.ApproverGroup{group("a", 1, "k"), group("b", 1, "l")}}, "count 1 is less than the 2"},
		{policy.ApprovalRule{Count: 3, Groups: []policy.ApproverGroup{group("a", 2, "k")}}, "group a asks for 2 approvals of 1 key"},
		{policy.ApprovalRule{Count: 3, Groups: []policy.ApproverGroup{group("a", 0, "k")}}, "asks for 0 approvals"},
		{policy.ApprovalRule{Count: 3, Groups: []policy.ApproverGroup{group("A", 1, "k")}}, `group "A": want a lower-case name`},
		{policy.ApprovalRule{Count: 3, Groups: []policy.ApproverGroup{group("a", 1, "k", "k")}}, `key "k" is empty or listed twice`},
		{policy.ApprovalRule{Count: 3, Groups: []policy.ApproverGroup{group("a", 1, "k"), group("b", 1, "k")}}, "key k is in the groups a and b"},
		{policy.ApprovalRule{Count: 3, Groups: []policy.ApproverGroup{group("a", 1, "k"), group("a", 1, "l")}}, "group a is defined twice"},
	} {
		err := c.rule.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.rule, err, c.want)
		}
		if d := asking(0).Check(sample(), nil); d.Allowed() {
			t.Error("a rule that asks for nothing allows everything")
		}
	}
}

func TestNewApprovalRefuses(t *testing.T) {
	t.Parallel()
	subject := evidence.StatementSubject{Digest: evidence.NewDigestSet(sample().Digest)}
	long := strings.Repeat("x", registry.MaxText+1)
	for name, c := range map[string]struct {
		edit func(*evidence.Approval)
		want string
	}{
		"as it was":                  {func(*evidence.Approval) {}, ""},
		"no resource":                {func(a *evidence.Approval) { a.ResourceURI = "" }, "resource"},
		"the scheme alone":           {func(a *evidence.Approval) { a.ResourceURI = "oci://" }, "resource"},
		"a path":                     {func(a *evidence.Approval) { a.ResourceURI = "prod/vision/digits" }, "resource"},
		"an invisible resource":      {func(a *evidence.Approval) { a.ResourceURI += "\u200b" }, "not visible"},
		"no comment":                 {func(a *evidence.Approval) { a.Comment = "" }, "want a comment"},
		"two lines":                  {func(a *evidence.Approval) { a.Comment = "a\nb" }, "not visible"},
		"a long comment":             {func(a *evidence.Approval) { a.Comment = long }, "want at most 1024"},
		"no time":                    {func(a *evidence.Approval) { a.ApprovedOn = time.Time{} }, "time of the approval is missing"},
		"expires when it is given":   {func(a *evidence.Approval) { a.ExpiresOn = a.ApprovedOn }, "want a later time"},
		"64 lines":                   {func(a *evidence.Approval) { a.Accepts = slices.Repeat([]string{long[1:]}, 64) }, ""},
		"65 lines":                   {func(a *evidence.Approval) { a.Accepts = slices.Repeat([]string{"x"}, 65) }, "accepts 65 lines: want at most 64"},
		"a long line":                {func(a *evidence.Approval) { a.Accepts = []string{"x", long} }, "accepted line 2 has 1025 bytes"},
		"an empty line":              {func(a *evidence.Approval) { a.Accepts = []string{""} }, "accepted line 1 is empty"},
		"withdrawn":                  {func(a *evidence.Approval) { a.Withdrawn = true }, ""},
		"withdrawn, accepts":         {func(a *evidence.Approval) { a.Withdrawn, a.Accepts = true, []string{"x"} }, "one that is withdrawn"},
		"withdrawn, until some time": {func(a *evidence.Approval) { a.Withdrawn, a.ExpiresOn = true, hours(23) }, "one that is withdrawn"},
	} {
		a := evidence.Approval{ResourceURI: inProdOf, Comment: "tried it", ApprovedOn: hours(1)}
		c.edit(&a)
		statement, err := evidence.NewApproval(subject, a)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !registry.HasCode(err, registry.CodeInvalid)) {
			t.Errorf("%s: error %v, want CodeInvalid with %q", name, err, c.want)
		}
		if err != nil {
			continue
		}
		var read evidence.Claim
		if err := registry.DecodeSigned(statement, &read.Statement); err != nil {
			t.Fatal(err)
		}
		if got, ok := read.Approval(); !ok || !slices.Equal(got.Accepts, a.Accepts) || got.Withdrawn != a.Withdrawn || !got.ApprovedOn.Equal(a.ApprovedOn) {
			t.Errorf("%s: read as %+v, %t", name, got, ok)
		}
	}
}

// The history shows what was approved, for what, and what was taken back.
func TestReasonOfApproval(t *testing.T) {
	t.Parallel()
	r := sample()
	if got := approval(r, "first", 1, nil).Reason(); got != "for prod/vision/digits: tried it" {
		t.Errorf("an approval: %q", got)
	}
	if got := withdrawal(r, "first", 1).Reason(); got != "withdrawn for prod/vision/digits: tried it" {
		t.Errorf("a withdrawal: %q", got)
	}
}

// FuzzApproval: what is read is valid, and is read again from what it is written as.
func FuzzApproval(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"resourceUri":"` + inProdOf + `","comment":"tried it","approvedOn":"2026-01-01T00:00:00Z"}`,
		`{"resourceUri":"` + inProdOf + `","comment":"x","approvedOn":"2026-01-01T00:00:00Z","expiresOn":"2026-01-02T00:00:00Z","accepts":["parity of x: y"]}`,
		`{"resourceUri":"` + inProdOf + `","comment":"x","approvedOn":"2026-01-01T00:00:00Z","withdrawn":true}`,
		`{"resourceUri":"` + inProdOf + `","comment":"x","approvedOn":"2026-01-01T00:00:00Z","Withdrawn":true,"accepts":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := evidence.Claim{Statement: evidence.Statement{PredicateType: evidence.PredicateApproval, Predicate: data}}
		a, ok := c.Approval()
		if !ok {
			return
		}
		if err := a.Validate(); err != nil || registry.ValidateText("reason", c.Reason()) != nil {
			t.Fatalf("%s is read, and not valid: %v, reason %q", data, err, c.Reason())
		}
		written, err := registry.CanonicalJSON(a)
		if err != nil {
			t.Fatalf("%s cannot be written again: %v", data, err)
		}
		c.Statement.Predicate = written
		if again, ok := c.Approval(); !ok || again.Comment != a.Comment || again.Withdrawn != a.Withdrawn || !slices.Equal(again.Accepts, a.Accepts) {
			t.Fatalf("%s is read as %+v, and again as %+v", data, a, again)
		}
	})
}
