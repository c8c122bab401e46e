package main

import (
	"slices"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// signedText is a statement with the role that signs it.
type signedText struct {
	role      evidence.Role
	subject   registry.Digest
	predicate string
	content   any
}

// say signs statements and attaches them, as the thief or as their owner.
func (w *stolen) say(t *testing.T, as *thief, environment string, r artifact.Release, all ...signedText) {
	t.Helper()
	for _, s := range all {
		w.clock.Pass(time.Minute)
		role, ctx, to := s.role, t.Context(), w.Interface
		if as != nil {
			role, ctx, to = as.key, w.ctx(t), w.guarded
		}
		bundle := w.bundle(t, role, s.predicate, s.content, s.subject)
		_, err := to.Attach(ctx, api.Attachment{Environment: environment, Model: r.Model, Release: r.Digest, Subject: s.subject, Bundle: bundle})
		if err != nil && as == nil {
			t.Fatalf("attach %s: %v", s.predicate, err)
		}
	}
}

// bundle signs with the key of a role; without a role, with a key that is nowhere trusted.
func (w *stolen) bundle(t *testing.T, role evidence.Role, predicate string, content any, subjects ...registry.Digest) []byte {
	t.Helper()
	var about []evidence.StatementSubject
	for _, s := range subjects {
		about = append(about, evidence.StatementSubject{Digest: evidence.NewDigestSet(s)})
	}
	statement, err := evidence.NewStatement(predicate, content, about...)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := w.key(t, role).Sign(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

func (w *stolen) built(r artifact.Release) []signedText {
	var all []signedText
	for _, s := range r.Subjects() {
		all = append(all, signedText{evidence.RoleBuilder, s.Digest, evidence.PredicateSign, struct{}{}})
	}
	for _, e := range r.Engines {
		all = append(all, signedText{evidence.RoleBuilder, e.Digest, evidence.PredicateProvenance, struct{}{}})
	}
	return all
}

func (w *stolen) verified(t *testing.T, r artifact.Release, verdict evidence.Verdict) []signedText {
	t.Helper()
	var all []signedText
	for _, e := range r.Engines {
		report := w.Seeing(t, registrytest.Report(r, e, verdict))
		all = append(all, signedText{evidence.RoleVerifier, e.Digest, evidence.PredicateParity, report})
	}
	return all
}

func (w *stolen) approved(t *testing.T, r artifact.Release) signedText {
	t.Helper()
	seen, err := history.NewestHash(t.Context(), w, r.Model)
	if err != nil {
		t.Fatal(err)
	}
	return signedText{evidence.RoleApprover, r.Digest, evidence.PredicateApproval, evidence.Approval{
		ResourceURI: "oci://local/prod/" + r.Model, Comment: "tried it", ApprovedOn: w.clock.Now(), History: evidence.NewDigestSet(seen)}}
}

// agreed is what one approver says for a promotion that skips a report and an approval.
func (w *stolen) agreed(t *testing.T, role evidence.Role, r artifact.Release) signedText {
	t.Helper()
	now := w.clock.Now()
	return signedText{role, r.Digest, evidence.PredicateBreakGlass, evidence.BreakGlass{
		ResourceURI: "oci://local/prod/" + r.Model, Replaces: evidence.NewDigestSet(w.head(t)), Skips: w.chain.List[1].BreakGlass,
		Comment: "prod is down", ApprovedOn: now, ExpiresOn: now.Add(time.Hour)}}
}

func (w *stolen) quarantined(r artifact.Release) signedText {
	return signedText{evidence.RoleApprover, r.Digest, evidence.PredicateQuarantine,
		evidence.Quarantine{Reason: "wrong labels", IssuedOn: w.clock.Now()}}
}

func (w *stolen) build(t *testing.T, r artifact.Release) {
	t.Helper()
	w.say(t, nil, "staging", r, w.built(r)...)
}

func (w *stolen) verify(t *testing.T, r artifact.Release, verdict evidence.Verdict) {
	t.Helper()
	w.say(t, nil, "staging", r, w.verified(t, r, verdict)...)
}

func (w *stolen) approve(t *testing.T, r artifact.Release) {
	t.Helper()
	w.say(t, nil, "staging", r, w.approved(t, r))
}

func (w *stolen) quarantine(t *testing.T, environment string, r artifact.Release) {
	t.Helper()
	w.say(t, nil, environment, r, w.quarantined(r))
}

// allow makes everything that the policy asks for.
func (w *stolen) allow(t *testing.T, r artifact.Release) {
	t.Helper()
	w.build(t, r)
	w.verify(t, r, evidence.VerdictPass)
	w.approve(t, r)
}

// restrict signs the next restriction list of prod with the key of a role, and has a registry take it.
func (w *stolen) restrict(t *testing.T, role evidence.Role, by api.Interface, add, lift []evidence.Restriction) error {
	t.Helper()
	current, err := w.Restrictions(t.Context(), "prod")
	if err != nil {
		t.Fatal(err)
	}
	next, err := current.Next(w.chain.EnvironmentURI("prod"), "try", w.keys[role].KeyID(), w.clock.Now(), add, lift)
	if err != nil {
		return err // there is nothing to lift
	}
	statement, err := evidence.NewRestrictionList(next)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := w.keys[role].Sign(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	_, err = by.Restrict(w.ctx(t), "prod", bundle)
	return err
}

// sayAll lets the thief say everything in favor of a release, and lift its quarantines and
// restrictions.
func (w *stolen) sayAll(t *testing.T, r artifact.Release) {
	t.Helper()
	all := slices.Concat(w.built(r), w.verified(t, r, evidence.VerdictPass), []signedText{w.approved(t, r)})
	claims, _, err := w.Claims(t.Context(), "staging", r)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range evidence.Quarantines(r, claims, r.Digest) {
		all = append(all, signedText{evidence.RoleApprover, r.Digest, evidence.PredicateQuarantine, evidence.Quarantine{
			Reason: "not so", IssuedOn: w.clock.Now(), Lifts: []registry.Digest{q.Bundle}}})
	}
	forAna := w.approved(t, r)
	named := forAna.content.(evidence.Approval)
	named.Person = &evidence.Person{Principal: "token:ana", Token: "ana"}
	forAna.content = named
	all = append(all, forAna)
	w.say(t, &w.thief, "staging", r, all...)
	w.say(t, &w.thief, "prod", r, all...)
	w.attest(t, evidence.AttestApproval, r)
	w.unlist(t, r, evidence.PredicateQuarantine, evidence.PredicateParity)
	if w.thief.key != "" {
		_ = w.restrict(t, w.thief.key, w.guarded, nil, registrytest.SourceOf(r))
	}
}

// attest lets the service sign for the thief, if it does.
func (w *stolen) attest(t *testing.T, kind evidence.AttestKind, r artifact.Release) {
	t.Helper()
	_, _ = w.guarded.Attest(w.ctx(t), evidence.AttestRequest{Kind: kind, Environment: "prod", Model: r.Model, Release: r.Digest, Comment: "try"})
}

// sayAgainst lets the thief say everything against a release of prod.
func (w *stolen) sayAgainst(t *testing.T, r artifact.Release) {
	t.Helper()
	w.say(t, &w.thief, "prod", r, append(w.verified(t, r, evidence.VerdictFail), w.quarantined(r))...)
	w.attest(t, evidence.AttestQuarantine, r)
	w.unlist(t, r, evidence.PredicateVSA)
	for _, e := range r.Engines {
		q := w.quarantined(r)
		q.subject = e.Digest
		w.say(t, &w.thief, "prod", r, q)
		q.content = evidence.Quarantine{Reason: "wrong labels", IssuedOn: w.clock.Now(), Person: &evidence.Person{Principal: "token:ana", Token: "ana"}}
		w.say(t, &w.thief, "prod", r, q)
	}
}

// forged are the claims about a release that somebody finds who is given its digest, with a summary of the thief.
func (w *stolen) forged(t *testing.T, r artifact.Release) []evidence.Claim {
	t.Helper()
	resource := "oci://local/prod/" + r.Model
	var subjects []registry.Digest
	for _, s := range r.Subjects() {
		subjects = append(subjects, s.Digest)
	}
	bundles := [][]byte{w.bundle(t, w.thief.key, evidence.PredicateVSA, evidence.VSA{
		TimeVerified: w.clock.Now(), ResourceURI: resource, VerificationResult: evidence.VSAPassed}, subjects...)}
	for _, s := range w.built(r) {
		bundles = append(bundles, w.bundle(t, s.role, s.predicate, s.content, s.subject))
	}
	var claims []evidence.Claim
	for _, b := range bundles {
		c, err := w.trust.Verify(t.Context(), b, resource)
		if err != nil {
			continue
		}
		for _, s := range subjects {
			if c.Statement.About(s) {
				about := c
				about.Subject, about.RecordedAt = s, w.clock.Now()
				claims = append(claims, about)
			}
		}
	}
	return claims
}
