package service_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/trust"
)

// attached lists the environments in which the history names a bundle.
func (w *world) attached(t *testing.T, bundle registry.Digest) []string {
	t.Helper()
	events, err := w.History(t.Context(), history.HistoryQuery{Kind: history.EventAttach})
	must(t, err)
	var places []string
	for _, e := range events {
		if slices.Contains(e.Evidence, bundle) {
			places = append(places, e.Environment)
		}
	}
	return places
}

// chosen is the engine that a resolver gives for prod.
func chosen(t *testing.T, r api.Reader, what string) registry.Digest {
	t.Helper()
	answer, err := r.Resolve(t.Context(), prod(""))
	if err != nil || answer.Engine == nil {
		t.Fatalf("%s: resolve gives %+v, error %v, want an engine", what, answer, err)
	}
	return answer.Engine.Digest
}

// A verifier in staging finds after the promotion that an engine fails: prod stops giving it
// at once, whether its answer was remembered or not, until a pass that saw the failure heals
// it, also from staging.
func TestReportsOfStagingCountInProd(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]func(*backend.Backend){"local": nil, "prod on another registry": {external("prod")}, "staging on another registry": {external("staging")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, edits...)
			r := w.Promoted(t, registrytest.Build{})
			s := w.replica(t, 1<<20, new(atomic.Int64))
			best := chosen(t, s, "before")
			e, _ := r.Engine(best)

			failed := w.AttachTo(t, "staging", r, best, evidence.PredicateParity, registrytest.Report(r, e, evidence.VerdictFail))
			if got := w.attached(t, failed); !slices.Equal(got, []string{"staging", "prod"}) {
				t.Errorf("the failure is attached in %v, want in staging and then in prod", got)
			}
			for _, resolver := range []api.Reader{w, s} {
				if got := chosen(t, resolver, "after the failure"); got == best {
					t.Errorf("%T gives the engine that failed", resolver)
				}
			}
			if p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); registry.CodeOf(err) != registry.CodePolicy ||
				!strings.Contains(err.Error(), "would no longer accept it") {
				t.Errorf("promote what failed since: %+v, error %v, want CodePolicy", p, err)
			}

			healed := w.AttachTo(t, "staging", r, best, evidence.PredicateParity, w.Seeing(t, registrytest.Report(r, e, evidence.VerdictPass)))
			if got := w.attached(t, healed); !slices.Equal(got, []string{"staging", "prod"}) {
				t.Errorf("the pass is attached in %v, want in staging and then in prod", got)
			}
			for _, resolver := range []api.Reader{w, s} {
				if got := chosen(t, resolver, "after the pass"); got != best {
					t.Errorf("%T does not give the engine that was healed", resolver)
				}
			}
			if p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil || !p.Unchanged {
				t.Errorf("promote what was healed: %+v, error %v", p, err)
			}
			w.faults(t)
			w.chained(t)
		})
	}
}

// What is attached again changes nothing, and an engine of two releases has one evidence.
func TestAttachAgainIsNoEvent(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	e := r.Engines[0]
	bundle := w.Bundle(t, "approver", evidence.PredicateQuarantine, evidence.Quarantine{Reason: "crashes"}, e.Digest)
	var stored registry.Digest
	for _, environment := range []string{"prod", "staging", "prod"} {
		d, err := w.Attach(t.Context(), api.Attachment{Environment: environment, Model: r.Model, Release: r.Digest, Subject: e.Digest, Bundle: bundle})
		must(t, err)
		stored = d
	}
	if got := w.attached(t, stored); !slices.Equal(got, []string{"prod", "staging"}) {
		t.Errorf("three attachments of one bundle are the events %v, want one in each environment", got)
	}
	w.chained(t)
}

// Evidence goes only where its subject is and its signer is trusted, and what allows a
// release stays where it was attached.
func TestWhatDoesNotSpread(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *backend.Backend) {
		c.Environments.Trust = append(c.Environments.Trust, trust.TrustEntry{
			Key: "verifier-of-staging", Roles: []evidence.Role{evidence.RoleVerifier}, Resources: []string{"oci://local/staging/"}})
	})
	r := w.Promoted(t, registrytest.Build{})
	e := r.Engines[0]
	for _, c := range []struct {
		name, key, predicateType string
		subject                  registry.Digest
		predicate                any
	}{
		{"a signature", "builder", evidence.PredicateSign, e.Digest, struct{}{}},
		{"an approval", "approver", evidence.PredicateApproval, r.Digest, approved()},
		{"a report of a verifier of staging", "verifier-of-staging", evidence.PredicateParity, e.Digest, registrytest.Report(r, e, evidence.VerdictFail)},
	} {
		d, err := w.Attach(t.Context(), api.Attachment{Environment: "staging", Model: r.Model, Release: r.Digest, Subject: c.subject,
			Bundle: w.Bundle(t, c.key, c.predicateType, c.predicate, c.subject)})
		must(t, err)
		if got := w.attached(t, d); slices.Contains(got, "prod") {
			t.Errorf("%s is attached in %v, want staging alone", c.name, got)
		}
	}
	next := w.Build(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	if got := w.attached(t,
		w.AttachTo(t, "staging", next, next.Digest, evidence.PredicateQuarantine, struct{}{})); !slices.Equal(got, []string{"staging"}) {
		t.Errorf("the quarantine of what prod does not have is attached in %v, want in staging", got)
	}
}

// Evidence that came in past the service, or when it could not reach prod, is brought there by
// the next promotion, also of what is there already.
func TestPromotionBringsEvidenceToWhatIsThere(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	s := w.replica(t, 1<<20, new(atomic.Int64))
	best := chosen(t, s, "before")
	e, _ := r.Engine(best)
	i := slices.IndexFunc(r.Subjects(), func(s artifact.Subject) bool { return s.Digest == best })
	bundle := evidence.Bundle{Data: w.Bundle(t, "verifier", evidence.PredicateParity, registrytest.Report(r, e, evidence.VerdictFail), best)}
	_, err := w.config.Content.PutEvidence(t.Context(), "staging/"+r.Model, bundle, r.Subjects()[i:i+1])
	must(t, err)
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: r.Model, DryRun: true}); registry.CodeOf(err) != registry.CodePolicy {
		t.Errorf("dry run: error %v, want CodePolicy", err)
	}
	if chosen(t, s, "after a dry run") != best {
		t.Error("a dry run brought evidence to prod")
	}
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: r.Model}); registry.CodeOf(err) != registry.CodePolicy {
		t.Errorf("promote: error %v, want CodePolicy", err)
	}
	if chosen(t, s, "after the promotion was refused") == best {
		t.Error("prod gives the engine that failed")
	}
	w.faults(t)
	w.chained(t)
}

// A promotion of what is there brings reports and quarantines that are not there yet, and nothing
// else: the history stays as it is.
func TestPromotionAgainBringsNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	w.AttachTo(t, "staging", r, r.Engines[0].Digest, evidence.PredicateProvenance, map[string]string{"made": "again"})
	before := w.last(t)
	p, err := w.Promote(t.Context(), api.PromoteRequest{Model: r.Model})
	if err != nil || !p.Unchanged {
		t.Errorf("promote again: %+v, error %v; want that nothing changed", p, err)
	}
	if after := w.last(t); after != before {
		t.Errorf("the history has %d events more, want none", after-before)
	}
}

// New evidence is held against the schema of its predicate where there is one, before anything is stored.
func TestAttachHoldsEvidenceAgainstItsSchema(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *backend.Backend) {
		c.CheckStatement = func(s evidence.Statement) error {
			if s.PredicateType == evidence.PredicateQuarantine {
				return registry.Errorf(registry.CodeInvalid, "it does not fit")
			}
			return nil
		}
	})
	r := w.Build(t, registrytest.Build{})
	attach := func(predicateType string, predicate any) error {
		_, err := w.Attach(t.Context(), api.Attachment{Environment: "staging", Model: r.Model, Release: r.Digest, Subject: r.Digest,
			Bundle: w.Bundle(t, "approver", predicateType, predicate, r.Digest)})
		return err
	}
	if err := attach(evidence.PredicateQuarantine, struct{}{}); !registry.HasCode(err, registry.CodeInvalid) ||
		!strings.Contains(err.Error(), "it does not fit") {
		t.Errorf("what does not fit: got %v, want code %s", err, registry.CodeInvalid)
	}
	if err := attach(evidence.PredicateApproval, approved()); err != nil {
		t.Errorf("what fits: got %v, want it attached", err)
	}
	w.chained(t)
}
