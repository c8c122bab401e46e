package registrytest

import (
	"slices"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
)

func testAttach(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	e := release.Engines[0]
	stored := r.AttachTo(t, "staging", release, e.Digest, evidence.PredicateParity, Report(release, e, evidence.VerdictFail))
	again := r.AttachTo(t, "staging", release, release.Digest, evidence.PredicateSign, struct{}{})
	claims, ignored, err := r.Claims(t.Context(), "staging", release)
	if err != nil || len(claims) != 2 || ignored.IgnoredCount != 0 {
		t.Fatalf("claims %+v, ignored %+v, error %v", claims, ignored, err)
	}
	for _, c := range claims {
		role, _ := evidence.RoleFor(c.Statement.PredicateType)
		if !slices.Contains([]registry.Digest{stored, again}, c.Bundle) ||
			!c.Statement.About(c.Subject) || c.Signer == "" || !slices.Contains(c.Roles, role) {
			t.Errorf("claim %+v", c)
		}
	}
	got := events(t, r, history.EventAttach)
	if len(got) != 2 || got[0].Subject != e.Digest || got[0].PredicateType != evidence.PredicateParity ||
		!slices.Equal(got[0].Evidence, []registry.Digest{stored}) ||
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
	good := api.Attachment{Environment: "staging", Model: Model,
		Release: release.Digest, Subject: e, Bundle: sign("builder", evidence.PredicateSign, e)}
	for name, c := range map[string]struct {
		code registry.Code
		edit func(a *api.Attachment)
	}{
		"stranger":            {registry.CodeTrust, func(a *api.Attachment) { a.Bundle = sign(Stranger, evidence.PredicateSign, e) }},
		"role":                {registry.CodeTrust, func(a *api.Attachment) { a.Bundle = sign("builder", evidence.PredicateParity, e) }},
		"role of a VSA":       {registry.CodeTrust, func(a *api.Attachment) { a.Bundle = sign("verifier", evidence.PredicateVSA, e) }},
		"predicate":           {registry.CodeTrust, func(a *api.Attachment) { a.Bundle = sign("builder", "https://example.com/x", e) }},
		"about another":       {registry.CodeTrust, func(a *api.Attachment) { a.Bundle = sign("builder", evidence.PredicateSign, other) }},
		"changed":             {registry.CodeTrust, func(a *api.Attachment) { a.Bundle = slices.Concat(a.Bundle[:20], []byte("x"), a.Bundle[21:]) }},
		"empty":               {registry.CodeTrust, func(a *api.Attachment) { a.Bundle = nil }},
		"unknown subject":     {registry.CodeNotFound, func(a *api.Attachment) { a.Subject = d("nowhere") }},
		"part that is none":   {registry.CodeNotFound, func(a *api.Attachment) { a.Subject = release.Limits }},
		"unknown release":     {registry.CodeNotFound, func(a *api.Attachment) { a.Release = d("nowhere") }},
		"unknown model":       {registry.CodeNotFound, func(a *api.Attachment) { a.Model = "vision/letters" }},
		"unknown environment": {registry.CodeNotFound, func(a *api.Attachment) { a.Environment = "moon" }},
		"not there yet":       {registry.CodeNotFound, func(a *api.Attachment) { a.Environment = "prod" }},
	} {
		a := good
		c.edit(&a)
		if _, err := r.Attach(t.Context(), a); err == nil || registry.CodeOf(err) != c.code {
			t.Errorf("%s: error %v, want %s", name, err, c.code)
		}
	}
	claims, ignored, err := r.Claims(t.Context(), "staging", release)
	if err != nil || len(claims)+ignored.IgnoredCount != 0 || len(events(t, r, history.EventAttach)) != 0 {
		t.Errorf("what was refused is there: %v, %v, error %v", claims, ignored, err)
	}
	if _, err := r.Attach(t.Context(), good); err != nil {
		t.Errorf("the attachment that the cases change: %v", err)
	}
}

// Claims say when the history saw them first, in whatever environment, and what their
// verifiers could know of it.
func testRecordedClaims(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	r.Prove(t, release)
	e := release.Engines[0]
	seen := r.Seeing(t, Report(release, e, evidence.VerdictPass))
	last := r.AttachTo(t, "staging", release, e.Digest, evidence.PredicateParity, seen)
	unknown := Report(release, e, evidence.VerdictPass)
	unknown.History = evidence.NewDigestSet(d("no event"))
	lost := r.AttachTo(t, "staging", release, e.Digest, evidence.PredicateParity, unknown)
	_, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model})
	must(t, err)
	first := make(map[registry.Digest]history.Event)
	numbers := make(map[registry.Digest]int64)
	for _, e := range events(t, r, "") {
		numbers[e.Hash] = e.Seq
		for _, d := range e.Evidence {
			if _, ok := first[d]; !ok {
				first[d] = e
			}
		}
	}
	for _, environment := range []string{"staging", "prod"} {
		claims, _, err := r.Claims(t.Context(), environment, release)
		must(t, err)
		for _, c := range claims {
			want := first[c.Bundle]
			if c.Recorded == 0 || c.Recorded != want.Seq || !c.RecordedAt.Equal(want.Time) || c.Key != evidence.KeyTrusted {
				t.Errorf(
					"%s: %s is in row %d of %v by a key %q, want row %d of %v by a trusted one", environment,
					c.Statement.PredicateType, c.Recorded, c.RecordedAt, c.Key, want.Seq, want.Time)
			}
			wantSeen := int64(0)
			if c.Bundle == last {
				wantSeen = numbers[c.HistorySeen()]
			}
			if c.Observed != wantSeen || c.Bundle == last && wantSeen == 0 || c.Bundle == lost && c.HistorySeen() != d("no event") {
				t.Errorf("%s: %s saw row %d, want %d", environment, c.Bundle, c.Observed, wantSeen)
			}
		}
	}
}

// A pass that claims to be of a time to come could not be outdone for as long. A failure
// is taken whatever its time.
func testAttachFromTheFuture(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	e := release.Engines[0]
	for v, code := range map[evidence.Verdict]registry.Code{evidence.VerdictPass: registry.CodeTrust,
		evidence.VerdictFail: "", evidence.VerdictUndecided: ""} {
		report := Report(release, e, v)
		report.FinishedOn = time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)
		_, err := r.Attach(t.Context(), api.Attachment{
			Environment: "staging", Model: Model, Release: release.Digest, Subject: e.Digest,
			Bundle: r.Bundle(t, "verifier", evidence.PredicateParity, report, e.Digest),
		})
		if code == "" && err != nil || code != "" && registry.CodeOf(err) != code {
			t.Errorf("verdict %s of 2199: error %v, want code %q", v, err, code)
		}
	}
}

// Evidence that comes in where the release was promoted to counts there at once.
func testQuarantine(t *testing.T, r Registry) {
	first := r.Promoted(t, Build{})
	second := r.Promoted(t, Build{Version: "1.1.0", Salt: "b"})
	r.AttachTo(t, "prod", second, second.Digest, evidence.PredicateQuarantine, struct{}{})
	_, err := r.Resolve(t.Context(), api.ResolveQuery{Environment: "prod", Model: Model, Node: Node("v3")})
	refused(t, err, registry.CodeNoEngine, "quarantine")
	for _, dry := range []bool{true, false} { // the head is there already, and may not stay
		p, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model, DryRun: dry})
		refused(t, err, registry.CodePolicy, "prod is already at 1.1.0", "quarantine")
		if p.Decision.Allowed() || p.Release != second.Digest {
			t.Errorf("promoting the head again gives %+v, want the decision against it", p)
		}
	}
	_, err = r.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: Model, Reason: "bad"})
	must(t, err)
	headIs(t, r, "prod", first.Digest)
	must(t, r.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: Model, Reason: "try it again"}))
	p, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model, Ref: "1.1.0"})
	refused(t, err, registry.CodePolicy, "quarantine")
	if p.Decision.Allowed() {
		t.Error("the decision allows what is in quarantine in the destination")
	}
	headIs(t, r, "prod", first.Digest)
}
