package registrytest

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

func testAttach(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	e := release.Engines[0]
	stored := r.AttachTo(t, "staging", release, e.Digest, registry.PredicateParity, Report(release, e, registry.VerdictFail))
	again := r.AttachTo(t, "staging", release, release.Digest, registry.PredicateSign, struct{}{})
	claims, ignored, err := r.Claims(t.Context(), "staging", release)
	if err != nil || len(claims) != 2 || len(ignored) != 0 {
		t.Fatalf("claims %+v, ignored %+v, error %v", claims, ignored, err)
	}
	for _, c := range claims {
		role, _ := registry.RoleFor(c.Statement.PredicateType)
		if !slices.Contains([]registry.Digest{stored, again}, c.Bundle) || !c.Statement.About(c.Subject) || c.Signer == "" || !slices.Contains(c.Roles, role) {
			t.Errorf("claim %+v", c)
		}
	}
	got := events(t, r, registry.EventAttach)
	if len(got) != 2 || got[0].Subject != e.Digest || got[0].PredicateType != registry.PredicateParity || !slices.Equal(got[0].Evidence, []registry.Digest{stored}) ||
		got[0].Signer != claims[0].Signer && got[0].Signer != claims[1].Signer || got[0].Release != release.Digest {
		t.Errorf("history has %+v", got)
	}
	chained(t, r)
}

func testAttachRefuses(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	e, other := release.Engines[0].Digest, release.Engines[1].Digest
	sign := func(key, predicateType string, subject registry.Digest) []byte {
		return r.Bundle(t, key, predicateType, struct{}{}, subject)
	}
	good := registry.Attachment{Environment: "staging", Model: Model, Release: release.Digest, Subject: e, Bundle: sign("builder", registry.PredicateSign, e)}
	for name, c := range map[string]struct {
		code registry.Code
		edit func(a *registry.Attachment)
	}{
		"stranger":            {registry.CodeTrust, func(a *registry.Attachment) { a.Bundle = sign(Stranger, registry.PredicateSign, e) }},
		"role":                {registry.CodeTrust, func(a *registry.Attachment) { a.Bundle = sign("builder", registry.PredicateParity, e) }},
		"role of a VSA":       {registry.CodeTrust, func(a *registry.Attachment) { a.Bundle = sign("verifier", registry.PredicateVSA, e) }},
		"predicate":           {registry.CodeTrust, func(a *registry.Attachment) { a.Bundle = sign("builder", "https://example.com/x", e) }},
		"about another":       {registry.CodeTrust, func(a *registry.Attachment) { a.Bundle = sign("builder", registry.PredicateSign, other) }},
		"changed":             {registry.CodeTrust, func(a *registry.Attachment) { a.Bundle = slices.Concat(a.Bundle[:20], []byte("x"), a.Bundle[21:]) }},
		"empty":               {registry.CodeTrust, func(a *registry.Attachment) { a.Bundle = nil }},
		"unknown subject":     {registry.CodeNotFound, func(a *registry.Attachment) { a.Subject = d("nowhere") }},
		"part that is none":   {registry.CodeNotFound, func(a *registry.Attachment) { a.Subject = release.Limits }},
		"unknown release":     {registry.CodeNotFound, func(a *registry.Attachment) { a.Release = d("nowhere") }},
		"unknown model":       {registry.CodeNotFound, func(a *registry.Attachment) { a.Model = "vision/letters" }},
		"unknown environment": {registry.CodeNotFound, func(a *registry.Attachment) { a.Environment = "moon" }},
		"not there yet":       {registry.CodeNotFound, func(a *registry.Attachment) { a.Environment = "prod" }},
	} {
		a := good
		c.edit(&a)
		if _, err := r.Attach(t.Context(), a); err == nil || registry.CodeOf(err) != c.code {
			t.Errorf("%s: error %v, want %s", name, err, c.code)
		}
	}
	claims, ignored, err := r.Claims(t.Context(), "staging", release)
	if err != nil || len(claims)+len(ignored) != 0 || len(events(t, r, registry.EventAttach)) != 0 {
		t.Errorf("what was refused is there: %v, %v, error %v", claims, ignored, err)
	}
	if _, err := r.Attach(t.Context(), good); err != nil {
		t.Errorf("the attachment that the cases change: %v", err)
	}
}

// Evidence that comes in where the release was promoted to counts there at once.
func testQuarantine(t *testing.T, r Registry) {
	first := r.Promoted(t, Build{})
	second := r.Promoted(t, Build{Version: "1.1.0", Salt: "b"})
	r.AttachTo(t, "prod", second, second.Digest, registry.PredicateQuarantine, struct{}{})
	_, err := r.Resolve(t.Context(), registry.ResolveQuery{Environment: "prod", Model: Model, Node: Node("v3")})
	refused(t, err, registry.CodeNoEngine, "quarantine")
	_, err = r.Rollback(t.Context(), registry.RollbackRequest{Environment: "prod", Model: Model, Reason: "bad"})
	must(t, err)
	headIs(t, r, "prod", first.Digest)
	must(t, r.ReleaseHold(t.Context(), "prod", Model, "try it again"))
	p, err := r.Promote(t.Context(), registry.PromoteRequest{Model: Model, Reference: "1.1.0"})
	refused(t, err, registry.CodePolicy, "quarantine")
	if p.Decision.Allowed() {
		t.Error("the decision allows what is in quarantine in the destination")
	}
	headIs(t, r, "prod", first.Digest)
}
