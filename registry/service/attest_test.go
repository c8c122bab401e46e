package service_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// attestedOf makes prod ask for approvals, of which one may be that of the token ana or ben.
func attestedOf(count int) func(c *backend.Backend) {
	return func(c *backend.Backend) {
		approversOf(count)(c)
		c.Environments.List[1].Approvals.Attested = &policy.AttestedRule{Max: 1, People: []policy.ListedPerson{{Token: "ana"}, {Token: "ben"}}}
	}
}

// signedIn is a context of the bearer of a token.
func signedIn(t *testing.T, token string) context.Context {
	return storage.WithPrincipal(t.Context(), storage.Principal{Name: "token:" + token,
		Person: evidence.Person{Principal: "token:" + token, Token: token}})
}

// attest has the service sign something about a release for prod.
func (w *world) attest(t *testing.T, token string, kind evidence.AttestKind, r artifact.Release, edit func(*evidence.AttestRequest)) error {
	t.Helper()
	req := evidence.AttestRequest{Kind: kind, Environment: "prod", Model: r.Model, Release: r.Digest, Comment: "tried it"}
	if edit != nil {
		edit(&req)
	}
	_, err := w.Attest(signedIn(t, token), req)
	return err
}

// A person without a key approves. It is shown as the word of the service, comes with the promotion, and can
// be taken back before.
func TestAttestedPromotion(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]func(*backend.Backend){
		"local": nil, "prod on another registry": {external("prod")}, "staging on another registry": {external("staging")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, append(edits, attestedOf(2))...)
			r := w.proven(t, registrytest.Build{})
			must(t, w.attest(t, "ana", evidence.AttestApproval, r, nil))
			must(t, w.attest(t, "ana", evidence.AttestApproval, r, nil))
			must(t, w.attest(t, "ben", evidence.AttestApproval, r, nil))
			if got, err := w.promotion(t, false); registry.ExitCode(err) != 4 ||
				!strings.Contains(got.Detail, "approved by token ana (according to the service); missing: 1 of 2") ||
				!strings.Contains(got.Detail, "that of token ben (according to the service) is one more than the 1 attested that count") {
				t.Fatalf("two people where one may: %+v, error %v", got, err)
			}
			_, err := w.approve(t, r, "first", nil)
			must(t, err)
			must(t, w.attest(t, "ana", evidence.AttestWithdrawal, r, nil))
			must(t, w.attest(t, "ben", evidence.AttestWithdrawal, r, nil))
			if got, err := w.promotion(t, true); registry.ExitCode(err) != 4 ||
				!strings.Contains(got.Detail, "token ana (according to the service) took its approval back") {
				t.Fatalf("taken back: %+v, error %v", got, err)
			}
			must(t, w.attest(t, "ana", evidence.AttestApproval, r, nil))
			got, err := w.promotion(t, false)
			if err != nil || !got.Met || got.Detail != "approved by first, token ana (according to the service)" || w.head(t).Release != r.Digest {
				t.Fatalf("one of each: %+v, error %v, head %+v", got, err, w.head(t))
			}
			claims, _, err := w.Claims(t.Context(), "prod", r)
			must(t, err)
			_, summary, ok := policy.FindVSA(claims, r, "oci://local/prod/"+r.Model)
			if !ok || !slices.ContainsFunc(got.Evidence, func(b registry.Digest) bool {
				return slices.ContainsFunc(summary.InputAttestations, func(d evidence.VSADescriptor) bool { return d.Digest.Names(b) })
			}) {
				t.Errorf("the summary names %+v, want %v among them", summary.InputAttestations, got.Evidence)
			}
		})
	}
}

// Who is not listed, is not signed in, or published the release, is told so; and their approvals are not made.
func TestAttestRefuses(t *testing.T) {
	t.Parallel()
	w := setup(t, attestedOf(1))
	r := w.Build(t, registrytest.Build{})
	w.Prove(t, r)
	w.Build(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	_, err := w.Publish(signedIn(t, "ben"), api.Publication{Model: r.Model, Release: r.Digest})
	must(t, err)
	for name, c := range map[string]struct {
		do   func() error
		code registry.Code
		says string
	}{
		"not listed": {func() error { return w.attest(t, "carl", evidence.AttestApproval, r, nil) }, registry.CodePolicy, "does not count approvals that the service signs for token carl"},
		"published":  {func() error { return w.attest(t, "ben", evidence.AttestApproval, r, nil) }, registry.CodePolicy, "published this release"},
		"nobody": {func() error {
			_, err := w.Attest(t.Context(), evidence.AttestRequest{Kind: evidence.AttestApproval,
				Environment: "prod", Model: r.Model, Release: r.Digest, Comment: "x"})
			return err
		}, registry.CodeUnauthenticated, "you are not signed in"},
		"a token of an OCI client": {func() error {
			ctx := storage.WithPrincipal(t.Context(), storage.Principal{Name: "token:ana"})
			_, err := w.Attest(ctx, evidence.AttestRequest{Kind: evidence.AttestApproval,
				Environment: "prod", Model: r.Model, Release: r.Digest, Comment: "x"})
			return err
		}, registry.CodeUnauthenticated, "you are not signed in"},
		"for what builds go to": {func() error {
			return w.attest(t, "ana", evidence.AttestApproval, r, func(q *evidence.AttestRequest) { q.Environment = "staging" })
		}, registry.CodeInvalid, "want exactly one of: staging to prod"},
		"expired": {func() error {
			return w.attest(t, "ana", evidence.AttestApproval, r, func(q *evidence.AttestRequest) { q.Expires = w.config.Now().Add(-time.Hour) })
		}, registry.CodeInvalid, "want a later time"},
	} {
		if err := c.do(); registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %s with %q", name, err, c.code, c.says)
		}
	}
	if got, err := w.promotion(t, true); registry.ExitCode(err) != 4 || !strings.Contains(got.Detail, "missing: 1 of 1 approval: another") {
		t.Errorf("after refusals: %+v, error %v, want no approval", got, err)
	}
}

// Who handed in what a builder signed about one engine, as whoever builds a part does, did not publish the
// release, and approves it as little: neither afterwards nor before.
func TestBuilderOfAnEngineDoesNotApprove(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		predicate, key string
		builds         bool
	}{
		"a signature": {evidence.PredicateSign, "dora", true},
		"provenance":  {evidence.PredicateProvenance, "dora", true},
		"a report":    {evidence.PredicateParity, "verifier", false},
	} {
		for when, first := range map[string]bool{"before the approval": false, "after the approval": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				w := setup(t, attestedOf(1))
				r := w.proven(t, registrytest.Build{})
				e, content := r.Engines[0], any(struct{}{})
				if !c.builds {
					content = w.Seeing(t, registrytest.Report(r, e, evidence.VerdictPass))
				}
				handIn := func() {
					_, err := w.Attach(signedIn(t, "ana"), api.Attachment{Environment: "staging", Model: r.Model, Release: r.Digest, Subject: e.Digest,
						Bundle: w.Bundle(t, c.key, c.predicate, content, e.Digest)})
					must(t, err)
				}
				if !first {
					handIn()
				}
				err := w.attest(t, "ana", evidence.AttestApproval, r, nil)
				if refused := registry.HasCode(err, registry.CodePolicy); refused != (c.builds && !first) || err != nil && !refused {
					t.Errorf("attest: error %v, want a refusal: %t", err, c.builds && !first)
				}
				if first {
					handIn()
				}
				if got, err := w.promotion(t, true); (registry.ExitCode(err) == 4) != c.builds {
					t.Errorf("promotion: %+v, error %v, want a refusal: %t", got, err, c.builds)
				}
			})
		}
	}
}

// What the history does not have counts for nothing, also if the attester's key signed it: a thief of
// that key who may push to staging. Publishing after an approval does not get around the rule that publishers
// do not approve.
func TestAttestedPastTheService(t *testing.T) {
	t.Parallel()
	w := setup(t, attestedOf(1))
	r := w.proven(t, registrytest.Build{})
	bundle := w.Bundle(t, "attester", evidence.PredicateApproval, evidence.Approval{ResourceURI: "oci://local/prod/" + r.Model, Comment: "tried it",
		ApprovedOn: w.config.Now(), Person: &evidence.Person{Principal: "token:ana", Token: "ana"}}, r.Digest)
	_, err := w.config.Content.PutEvidence(t.Context(), registry.Repository("staging", r.Model),
		evidence.Bundle{PredicateType: evidence.PredicateApproval, Data: bundle},
		[]artifact.Subject{r.Subjects()[0]})
	must(t, err)
	p, err := w.Promote(t.Context(), api.PromoteRequest{Model: r.Model, DryRun: true})
	if registry.ExitCode(err) != 4 || !slices.ContainsFunc(p.Decision.Ignored, func(i evidence.Ignored) bool {
		return i.Reason == "it names a person, and the history does not have it"
	}) {
		t.Errorf("ignored %+v, error %v, want the pushed approval among them", p.Decision.Ignored, err)
	}
	must(t, w.attest(t, "ben", evidence.AttestApproval, r, nil))
	if got, err := w.promotion(t, true); err != nil {
		t.Fatalf("approved: %+v, error %v", got, err)
	}
	w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	renamed := storage.WithPrincipal(t.Context(), storage.Principal{Name: "id:benjamin",
		Person: evidence.Person{Principal: "id:benjamin", Token: "ben", Name: "Ben"}})
	_, err = w.Publish(renamed, api.Publication{Model: r.Model, Release: r.Digest})
	must(t, err)
	events, err := w.History(t.Context(), history.HistoryQuery{Kind: history.EventPublish, Descending: true, Limit: 1})
	if want := (evidence.Person{Principal: "id:benjamin", Token: "ben"}); err != nil ||
		len(events) != 1 || events[0].Person == nil || *events[0].Person != want {
		t.Errorf("events %+v, error %v, want one by %+v", events, err, want)
	}
	if got, err := w.promotion(t, true); registry.ExitCode(err) != 4 || !strings.Contains(got.Detail, "published or signed the build") {
		t.Errorf("published afterwards: %+v, error %v", got, err)
	}
}

// Without an attester's key, or one that the environment trusts, the service signs for no one.
func TestAttestNeedsTheAttester(t *testing.T) {
	t.Parallel()
	w := setup(t, attestedOf(1), func(c *backend.Backend) {
		c.Environments.Trust = slices.DeleteFunc(slices.Clone(c.Environments.Trust), func(e trust.TrustEntry) bool { return e.Key == "attester" })
		c.Environments.Trust = append(c.Environments.Trust, trust.TrustEntry{Key: "attester",
			Roles: []evidence.Role{evidence.RoleApprover}, Resources: []string{"oci://local/"}})
	})
	r := w.proven(t, registrytest.Build{})
	if err := w.attest(t, "ana", evidence.AttestApproval, r, nil); registry.CodeOf(err) != registry.CodeTrust ||
		!strings.Contains(err.Error(), "is not trusted as attester") {
		t.Errorf("with the key of an approver: error %v, want CodeTrust", err)
	}
	if got, err := w.promotion(t, true); registry.ExitCode(err) != 4 {
		t.Errorf("promotion: %+v, error %v, want a refusal", got, err)
	}
}
