package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// person is the subject of an issuer.
func person(subject string) evidence.Person {
	return evidence.Person{Principal: "oidc:https://id.example.com#" + subject, Issuer: "https://id.example.com", Subject: subject, Name: "A " + subject}
}

// attested is an approval that the service signed for a person at an hour, changed by edit.
func attested(r artifact.Release, p evidence.Person, hour int, edit func(*evidence.Approval)) evidence.Claim {
	c := approval(r, "service", hour, func(a *evidence.Approval) {
		a.Person = &p
		if edit != nil {
			edit(a)
		}
	})
	c.Roles = []evidence.Role{evidence.RoleAttester}
	return c
}

// listing is a policy that asks for approvals, of which some may be those of people.
func listing(count, most int, people ...policy.ListedPerson) policy.Policy {
	p := asking(count)
	p.Approvals.Attested = &policy.AttestedRule{Max: most, People: people}
	return p
}

func subject(sub string) policy.ListedPerson {
	return policy.ListedPerson{Issuer: "https://id.example.com", Subject: sub}
}

func TestAttestedApprovals(t *testing.T) {
	t.Parallel()
	r := sample()
	edit := func(c evidence.Claim, change func(*evidence.Claim)) evidence.Claim {
		change(&c)
		return c
	}
	ana, ben, cleo := attested(r, person("ana"), 1, nil), attested(r, person("ben"), 2, nil), attested(r, person("cleo"), 3, nil)
	both := []policy.ListedPerson{subject("ana"), subject("ben")}
	ofKey := subject("ana")
	ofKey.Keys = []string{"keys/first.pub"}
	holder := policy.ListedPerson{Token: "ana", Keys: []string{"keys/first.pub", "keys/second.pub"}}
	byToken := listing(1, 1, holder)
	byToken.Promotion.Publishers = []evidence.Person{{Principal: "token:ana"}}
	token := evidence.Person{Principal: "token:ana", Token: "ana"}
	benOf := func(group string) policy.Policy {
		member := subject("ben")
		member.Group = group
		p := listing(2, 1, subject("ana"), member)
		p.Approvals.Groups = []policy.ApproverGroup{{Name: "risk", Count: 1, Keys: []string{"keys/risk.pub"}}}
		return p
	}
	builder := edit(signature(r.Digest), func(c *evidence.Claim) { c.Signer, c.Keys = "ana's", []string{"keys/first.pub"} })
	identity := edit(signature(r.Digest), func(c *evidence.Claim) {
		c.Signer, c.Keys = "ana's", []string{"identity https://id.example.com ana email=ana@example.com"}
	})
	published := listing(1, 1, both...)
	published.Promotion.Publishers = []evidence.Person{{Principal: "oidc:https://id.example.com#ana"}}
	renamed := listing(1, 1, both...)
	renamed.Promotion.Publishers = []evidence.Person{{Principal: "id:ana@old.example.com", Issuer: "https://id.example.com", Subject: "ana"}}
	sameName := listing(1, 1, both...)
	sameName.Promotion.Publishers = []evidence.Person{{Principal: person("ben").Principal, Issuer: "https://id.example.com", Subject: "ana"}}
	renamedKeys := listing(1, 1, ofKey)
	renamedKeys.Promotion.Publishers = renamed.Promotion.Publishers
	for name, c := range map[string]struct {
		policy policy.Policy
		claims []evidence.Claim
		met    bool
		says   string
	}{
		"listed":          {listing(1, 1, both...), []evidence.Claim{ana}, true, "approved by A ana (ana of https://id.example.com) (according to the service)"},
		"no list":         {asking(1), []evidence.Claim{ana}, false, "the environment does not list the person"},
		"another list":    {listing(1, 1, subject("ben")), []evidence.Claim{ana}, false, "the environment does not list the person"},
		"a list of keys":  {listing(1, 1, policy.ListedPerson{Token: "ana"}), []evidence.Claim{ana}, false, "the environment does not list the person"},
		"a listed token":  {listing(1, 1, policy.ListedPerson{Token: "ana"}), []evidence.Claim{attested(r, token, 1, nil)}, true, "approved by token ana (according"},
		"another issuer":  {listing(1, 1, policy.ListedPerson{Issuer: "https://other.example.com", Subject: "ana"}), []evidence.Claim{ana}, false, "does not list"},
		"two people":      {listing(2, 2, both...), []evidence.Claim{ana, ben}, true, "approved by A ana"},
		"one twice":       {listing(2, 2, both...), []evidence.Claim{ana, attested(r, person("ana"), 4, nil)}, false, "missing: 1 of 2"},
		"more than max":   {listing(2, 1, both...), []evidence.Claim{ana, ben}, false, "is one more than the 1 attested that count"},
		"and a key":       {listing(2, 1, both...), []evidence.Claim{ana, approval(r, "first", 2, nil)}, true, "approved by A ana"},
		"and the own key": {listing(2, 1, ofKey, subject("ben")), []evidence.Claim{ana, approval(r, "first", 2, nil)}, false, "approved with a key too, which counts once"},
		"and the own identity": {listing(2, 1, both...), []evidence.Claim{ana, edit(approval(r, "first", 2, nil), func(c *evidence.Claim) {
			c.Keys = []string{"identity https://id.example.com ana"}
		})}, false, "approved with a key too"},
		"two keys of one person":      {listing(2, 1, holder), []evidence.Claim{approval(r, "first", 1, nil), approval(r, "second", 2, nil)}, false, "missing: 1 of 2"},
		"keys of two people":          {listing(2, 1, holder), []evidence.Claim{approval(r, "first", 1, nil), approval(r, "third", 2, nil)}, true, "approved by keys/first.pub"},
		"another key of a builder by": {listing(1, 1, holder), []evidence.Claim{builder, approval(r, "second", 1, nil)}, false, "signed the build"},
		"a key of who published":      {byToken, []evidence.Claim{approval(r, "second", 1, nil)}, false, "cannot approve"},
		"the own key frees the place": {listing(2, 1, ofKey, subject("ben")), []evidence.Claim{ana, ben, approval(r, "first", 2, nil)}, true, "approved by A ben"},
		"the unlisted take no place":  {listing(1, 1, both...), []evidence.Claim{cleo, ben}, true, "approved by A ben"},
		"a group has the first place": {benOf("risk"), []evidence.Claim{ana, ben, approval(r, "first", 2, nil)}, true, "approved by A ben"},
		"nobody of the group":         {benOf(""), []evidence.Claim{ben, approval(r, "first", 2, nil)}, false, "missing: 1 of risk"},
		"a builder by key":            {listing(1, 1, ofKey), []evidence.Claim{ana, builder}, false, "published or signed the build"},
		"a builder by identity":       {listing(1, 1, both...), []evidence.Claim{ana, identity}, false, "published or signed the build"},
		"who published":               {published, []evidence.Claim{ana}, false, "published or signed the build"},
		"published by another name":   {renamed, []evidence.Claim{ana}, false, "published or signed the build"},
		"published by one name":       {sameName, []evidence.Claim{ben}, false, "published or signed the build"},
		"a key of who was renamed":    {renamedKeys, []evidence.Claim{approval(r, "first", 2, nil)}, false, "cannot approve"},
		"somebody renamed published":  {renamed, []evidence.Claim{ben}, true, "approved by A ben"},
		"somebody else published":     {published, []evidence.Claim{ben}, true, "approved by A ben"},
		"withdrawn": {listing(1, 1, both...),
			[]evidence.Claim{ana, attested(r, person("ana"), 5, func(a *evidence.Approval) { a.Withdrawn = true })}, false, "took its approval back"},
		"withdrawn by another": {listing(1, 1, both...), []evidence.Claim{ana, attested(r, person("ben"), 5, func(a *evidence.Approval) { a.Withdrawn = true })},
			true, "approved by A ana"},
		"withdrawn under another key of the service": {listing(1, 1, both...), []evidence.Claim{ana,
			edit(attested(r, person("ana"), 5, func(a *evidence.Approval) { a.Withdrawn = true }), func(c *evidence.Claim) { c.Signer = "the next" })},
			false, "took its approval back"},
		"withdrawn without the history": {listing(1, 1, both...), []evidence.Claim{ana,
			edit(attested(r, person("ana"), 5, func(a *evidence.Approval) { a.Withdrawn = true }), func(c *evidence.Claim) { c.Recorded = 0 })}, false,
			"took its approval back"},
		"something that cannot be read": {listing(1, 1, both...), []evidence.Claim{ana, edit(attested(r, person("ben"), 5, nil), func(c *evidence.Claim) {
			c.Statement.Predicate, c.Bundle = json.RawMessage(`{"comment":1}`), digest.FromString("unreadable")
		})}, false, "took its approval back"},
		"not in the history": {listing(1, 1, both...), []evidence.Claim{edit(ana, func(c *evidence.Claim) { c.Recorded = 0 })}, false, "missing: 1 of 1"},
		"by an approver's key": {listing(1, 1, both...), []evidence.Claim{edit(ana, func(c *evidence.Claim) { c.Roles = []evidence.Role{evidence.RoleApprover} })},
			false, "missing: 1 of 1"},
		"by a key with both roles": {listing(1, 1, both...), []evidence.Claim{edit(ana, func(c *evidence.Claim) {
			c.Roles = []evidence.Role{evidence.RoleApprover, evidence.RoleAttester}
		})}, false, "missing: 1 of 1"},
		"the attester's key as an approver's": {listing(1, 1, both...), []evidence.Claim{edit(approval(r, "first", 1, nil), func(c *evidence.Claim) {
			c.Roles = []evidence.Role{evidence.RoleAttester}
		})}, false, "missing: 1 of 1"},
		"of a revoked key": {listing(1, 1, both...), []evidence.Claim{edit(ana, func(c *evidence.Claim) { c.Key = evidence.KeyRevoked })}, false, "missing: 1 of 1"},
		"of two subjects in one text": {listing(1, 1, policy.ListedPerson{Issuer: "https://id.example.com", Subject: "a"}),
			[]evidence.Claim{attested(r, person("a\nb"), 1, nil)}, false, "missing: 1 of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.policy.CheckApprovals(r, c.claims)
			if got.Met != c.met || !strings.Contains(got.Detail, c.says) {
				t.Errorf("met %t: %s\nwant %t and %q", got.Met, got.Detail, c.met, c.says)
			}
			if d := c.policy.Check(r, append(enough(r), c.claims...)); d.Allowed() != c.met && !strings.Contains(name, "builder by") {
				t.Errorf("the promotion is allowed: %t, want %t; unmet %v", d.Allowed(), c.met, d.Unmet())
			}
		})
	}
}

// A quarantine that the service signs for somebody counts, also if the history does not have it. It
// neither lifts a quarantine, nor restricts by an approver's key what names somebody.
func TestAttestedQuarantines(t *testing.T) {
	t.Parallel()
	r := sample()
	who := person("ana")
	say := func(q evidence.Quarantine, roles ...evidence.Role) evidence.Claim {
		return claim(evidence.PredicateQuarantine, r.Digest, "service", roles[0], q)
	}
	attester, approver := evidence.RoleAttester, evidence.RoleApprover
	by := quarantine(r.Digest)
	for name, c := range map[string]struct {
		claims []evidence.Claim
		want   int
	}{
		"attested":                     {[]evidence.Claim{say(evidence.Quarantine{Reason: "x", Person: &who}, attester)}, 1},
		"by the attester, for nobody":  {[]evidence.Claim{say(evidence.Quarantine{Reason: "x"}, attester)}, 0},
		"by an approver, for somebody": {[]evidence.Claim{say(evidence.Quarantine{Reason: "x", Person: &who}, approver)}, 1},
		"an attested lift":             {[]evidence.Claim{by, recorded(3, say(evidence.Quarantine{Reason: "x", Person: &who, Lifts: []registry.Digest{by.Bundle}}, attester))}, 1},
		"an approver's lift":           {[]evidence.Claim{by, recorded(3, say(evidence.Quarantine{Reason: "x", Lifts: []registry.Digest{by.Bundle}}, approver))}, 0},
		"by a verifier":                {[]evidence.Claim{say(evidence.Quarantine{Reason: "x", Person: &who}, evidence.RoleVerifier)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := evidence.Quarantines(r, c.claims, r.Digest); len(got) != c.want {
				t.Errorf("%d quarantines, want %d: %+v", len(got), c.want, got)
			}
		})
	}
}

// Lines that attested approvals accept are lifted only where the environment says so.
func TestAttestedAccepts(t *testing.T) {
	t.Parallel()
	r := sample()
	claims := append(enough(r), attested(r, person("ana"), 1, func(a *evidence.Approval) { a.Accepts = []string{"a line"} }))
	for _, accepts := range []bool{false, true} {
		p := listing(1, 1, subject("ana"))
		p.Require = append(p.Require, policy.RequireNoLooser)
		p.Approvals.Attested.Accepts = accepts
		p.Promotion.Head, p.Promotion.Comparison = "sha256:0", &policy.Comparison{Version: "1.0.0", Looser: []string{"a line"}}
		if d := p.Check(r, claims); d.Allowed() != accepts {
			t.Errorf("accepts %t: allowed %t, unmet %v", accepts, d.Allowed(), d.Unmet())
		}
	}
}

func TestReasonOfAttested(t *testing.T) {
	t.Parallel()
	r := sample()
	c := attested(r, person("ana"), 1, nil)
	if got, want := c.Reason(), "A ana (ana of https://id.example.com), according to the service: for prod/vision/digits: tried it"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	c.Roles = []evidence.Role{evidence.RoleApprover}
	if got, want := c.Reason(), "for prod/vision/digits: tried it"; got != want {
		t.Errorf("reason of an approver's key %q, want %q", got, want)
	}
}

func TestPersonRefuses(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]evidence.Person{
		"nobody":              {},
		"without a principal": {Token: "a"},
		"only an issuer":      {Principal: "x", Issuer: "https://a"},
		"only a subject":      {Principal: "x", Subject: "a"},
		"a subject and token": {Principal: "x", Issuer: "https://a", Subject: "a", Token: "a"},
		"a long subject":      {Principal: "x", Issuer: "https://a", Subject: strings.Repeat("a", 256)},
		"an invisible name":   {Principal: "x", Token: "a", Name: "a\u202eb"},
	} {
		if err := p.Validate(); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
}

func TestAttestRequestRefuses(t *testing.T) {
	t.Parallel()
	good := evidence.AttestRequest{Kind: evidence.AttestApproval, Release: digest.FromString("x"), Comment: "tried it"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*evidence.AttestRequest){
		"no kind":                   func(r *evidence.AttestRequest) { r.Kind = "" },
		"a tag":                     func(r *evidence.AttestRequest) { r.Release = "1.0.0" },
		"no comment":                func(r *evidence.AttestRequest) { r.Comment = "" },
		"two lines":                 func(r *evidence.AttestRequest) { r.Comment = "a\nb" },
		"a withdrawal that accepts": func(r *evidence.AttestRequest) { r.Kind, r.Accepts = evidence.AttestWithdrawal, []string{"a"} },
		"a quarantine that expires": func(r *evidence.AttestRequest) { r.Kind, r.Expires = evidence.AttestQuarantine, hours(3) },
		"an approval of an engine":  func(r *evidence.AttestRequest) { r.Subject = digest.FromString("y") },
		"a quarantine of a tag":     func(r *evidence.AttestRequest) { r.Kind, r.Subject = evidence.AttestQuarantine, "1.0.0" },
	} {
		r := good
		edit(&r)
		if err := r.Validate(); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
}

// A person who is listed twice, by a token and by an identity that the token's entry holds, consents once, and not to what
// either published.
func TestPersonListedTwice(t *testing.T) {
	t.Parallel()
	r := sample()
	token := evidence.Person{Principal: "token:ana", Token: "ana"}
	holder := policy.ListedPerson{Token: "ana", Keys: []string{"identity https://id.example.com ana"}}
	claims := []evidence.Claim{attested(r, person("ana"), 1, nil), attested(r, token, 2, nil)}
	for need, met := range map[int]bool{1: true, 2: false} {
		if req := listing(need, need, holder, subject("ana")).CheckApprovals(r, claims); req.Met != met {
			t.Errorf("%d approvals needed: met %t (%s), want %t", need, req.Met, req.Detail, met)
		}
	}
	published := listing(1, 1, holder, subject("ana"))
	published.Promotion.Publishers = []evidence.Person{token}
	if req := published.CheckApprovals(r, claims[:1]); req.Met {
		t.Errorf("published by the token, approved by the identity: met (%s)", req.Detail)
	}
}
