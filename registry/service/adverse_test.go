package service_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// homes are where the content of prod may be.
func homes() map[string][]func(*backend.Backend) {
	return map[string][]func(*backend.Backend){"local": nil, "on another registry": {external("prod")}}
}

// lose takes bundles out of the lists of referrers of a world, wherever they are.
func (w *world) lose(bundles ...registry.Digest) {
	w.refs.lost, w.farRefs.lost = make(map[registry.Digest]bool), make(map[registry.Digest]bool)
	for _, d := range bundles {
		w.refs.lost[d], w.farRefs.lost[d] = true, true
	}
}

// refused wants prod to give no engine of the head, and no rollback to it.
func (w *world) refused(t *testing.T, resolvers ...api.Reader) {
	t.Helper()
	for _, r := range append(resolvers, w) {
		if answer, err := r.Resolve(t.Context(), prod("")); answer.Engine != nil || !strings.Contains(fmt.Sprint(err), "in quarantine") {
			t.Errorf("%T: resolve gives %+v, error %v, want nothing, because of the quarantine", r, answer.Engine, err)
		}
	}
}

// A quarantine that a repository does not list any more counts as before, for whoever asks, and is listed again.
func TestQuarantineThatItsRepositoryLost(t *testing.T) {
	t.Parallel()
	for name, edits := range homes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, edits...)
			first := w.Promoted(t, registrytest.Build{})
			head := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
			s := w.replica(t, 1<<20, new(atomic.Int64))
			chosen(t, s, "before")
			var lost []registry.Digest
			for _, r := range []artifact.Release{first, head} {
				lost = append(lost, w.AttachTo(t, "prod", r, r.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "wrong labels"}))
			}
			w.faults(t)
			w.lose(lost...)

			w.refused(t, s, w.replica(t, 1<<20, new(atomic.Int64)))
			if p, err := w.rollback(t, "1.0.0"); registry.ExitCode(err) != 4 || w.head(t).Release != head.Digest {
				t.Errorf("rollback: %+v, error %v, want CodePolicy", p, err)
			}
			if _, err := w.PreviewRollbackOf(t, s, "1.0.0"); registry.ExitCode(err) != 4 {
				t.Errorf("preview of a rollback: error %v, want CodePolicy", err)
			}
			standing, err := s.Standing(t.Context(), "prod", registrytest.Model)
			if err != nil || slices.ContainsFunc(standing, func(c api.Candidate) bool { return len(c.Reasons) == 0 }) {
				t.Errorf("engines that stand: %+v, error %v, want none", standing, err)
			}
			claims, _, err := w.Claims(t.Context(), "prod", first)
			if err != nil || len(evidence.Quarantines(first, claims, first.Digest)) != 1 {
				t.Errorf("quarantines of %s: error %v, want one", first.Tag(), err)
			}
			if b, err := w.service.Bundle(t.Context(), "prod", registrytest.Model, lost[0]); err != nil || len(b.Data) == 0 {
				t.Errorf("the bundle: %d bytes, error %v", len(b.Data), err)
			}
			// Prod is compared first, since evidence spreads from there.
			w.faults(t, suspicions(w, lost)...)
			heads, err := w.service.HeadFaults(t.Context())
			if err != nil || len(heads) != len(suspicions(w, lost)) || registry.ExitCode(heads[0].Err()) != 5 {
				t.Errorf("faults of heads: %+v, error %v", heads, err)
			}

			w.lose()
			w.faults(t)
			w.refused(t, s)
			w.chained(t)
		})
	}
}

// suspicions are what the faults must say of lost bundles, which are in both environments.
func suspicions(w *world, lost []registry.Digest) []string {
	var says []string
	for range w.config.Environments.List {
		for range lost {
			says = append(says, "is not among the referrers")
		}
	}
	return says
}

// PreviewRollbackOf says what a rollback of prod would do.
func (w *world) PreviewRollbackOf(t *testing.T, s *service.Remembering, version string) (api.Promotion, error) {
	t.Helper()
	return s.PreviewRollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Version: version})
}

// What was lost is listed again by the service, by a promotion, and also where others deleted it.
func TestLostQuarantineIsListedAgain(t *testing.T) {
	t.Parallel()
	for name, mend := range map[string]func(t *testing.T, w *world) error{
		"relist": func(t *testing.T, w *world) error {
			t.Helper()
			n, err := w.service.Relist(t.Context())
			if err == nil && n != 1 {
				err = fmt.Errorf("%d were listed again, want 1", n)
			}
			return err
		},
		"promote": func(t *testing.T, w *world) error {
			t.Helper()
			if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); registry.ExitCode(err) != 4 {
				return fmt.Errorf("promote: error %w, want CodePolicy", err)
			}
			return nil
		},
	} {
		for _, deleted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deleted %v", name, deleted), func(t *testing.T) {
				t.Parallel()
				w := setup(t, external("prod"))
				r := w.Promoted(t, registrytest.Build{})
				lost := w.AttachTo(t, "prod", r, r.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "wrong labels"})
				if deleted {
					must(t, w.far.DeleteManifest(t.Context(), "prod/"+r.Model, lost))
				} else {
					w.farRefs.lost = map[registry.Digest]bool{lost: true}
				}
				w.faults(t, "is not among the referrers")
				must(t, mend(t, w))
				w.faults(t)
				if _, err := w.farRefs.Manifest(t.Context(), "prod/"+r.Model, lost); err != nil || w.farRefs.lost[lost] {
					t.Errorf("the repository does not list it: %v", err)
				}
			})
		}
	}
}

// A lift that is not listed any more stays one, and the quarantine does not come back.
func TestLiftThatItsRepositoryLost(t *testing.T) {
	t.Parallel()
	for name, edits := range homes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, edits...)
			r := w.Promoted(t, registrytest.Build{})
			quarantine := w.AttachTo(t, "staging", r, r.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "wrong labels"})
			lift := w.AttachTo(t, "staging", r, r.Digest, evidence.PredicateQuarantine,
				evidence.Quarantine{Reason: "they were right", Lifts: []registry.Digest{quarantine}})
			for _, lost := range [][]registry.Digest{nil, {lift}, {quarantine}, {quarantine, lift}} {
				w.lose(lost...)
				answer, err := w.Resolve(t.Context(), prod(""))
				if err != nil || len(answer.Unlisted) != len(lost) {
					t.Errorf("without %d: resolve hands out %d bundles, error %v", len(lost), len(answer.Unlisted), err)
				}
				w.lose(lost...)
				if p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil || !p.Unchanged {
					t.Errorf("without %d: promote: %+v, error %v", len(lost), p, err)
				}
			}
			w.lose(lift, quarantine)
			next := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
			w.lose(lift, quarantine)
			if p, err := w.rollback(t, "1.0.0"); err != nil || w.head(t).Release != r.Digest {
				t.Errorf("rollback from %s: %+v, error %v", next.Tag(), p, err)
			}
		})
	}
}

// A failing report that is not listed any more keeps its engine from nodes, until a pass heals it.
func TestFailingReportThatItsRepositoryLost(t *testing.T) {
	t.Parallel()
	for name, edits := range homes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, edits...)
			r := w.Promoted(t, registrytest.Build{})
			best := chosen(t, w, "before")
			e, _ := r.Engine(best)
			w.lose(w.AttachTo(t, "prod", r, best, evidence.PredicateParity, registrytest.Report(r, e, evidence.VerdictFail)))
			if got := chosen(t, w, "after the failure was lost"); got == best {
				t.Error("prod gives the engine that failed")
			}
			w.AttachTo(t, "prod", r, best, evidence.PredicateParity, w.Seeing(t, registrytest.Report(r, e, evidence.VerdictPass)))
			if got := chosen(t, w, "after the pass"); got != best {
				t.Error("prod does not give the engine that was healed")
			}
		})
	}
}

// unreachable is content in which an environment takes no evidence.
type unreachable struct {
	storage.Content
	repository string
}

func (c unreachable) PutEvidence(ctx context.Context, repository string, b evidence.Bundle, subjects []artifact.Subject) ([]registry.Digest, error) {
	if repository == c.repository {
		return nil, errInjected
	}
	return c.Content.PutEvidence(ctx, repository, b, subjects)
}

func (c unreachable) StageEvidence(ctx context.Context, repository string, b evidence.Bundle, subjects []artifact.Subject) (storage.StagedEvidence, error) {
	if repository == c.repository {
		return storage.StagedEvidence{}, errInjected
	}
	return c.Content.StageEvidence(ctx, repository, b, subjects)
}

// A process that ends when a quarantine has reached one of two environments leaves none that gives the release.
func TestQuarantineThatSpreadHalfway(t *testing.T) {
	t.Parallel()
	for name, edits := range homes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, edits...)
			r := w.Promoted(t, registrytest.Build{})
			w.config.Content = unreachable{w.config.Content, "prod/" + r.Model}
			w.serve(t)
			s := w.replica(t, 1<<20, new(atomic.Int64))
			best := chosen(t, s, "before")
			e, _ := r.Engine(best)
			for _, c := range []struct {
				key, predicateType string
				subject            registry.Digest
				predicate          any
			}{
				{"verifier", evidence.PredicateParity, best, registrytest.Report(r, e, evidence.VerdictFail)},
				{"approver", evidence.PredicateQuarantine, r.Digest, evidence.Quarantine{Reason: "wrong labels"}},
			} {
				_, err := w.Attach(t.Context(), api.Attachment{Environment: "staging", Model: r.Model, Release: r.Digest, Subject: c.subject,
					Bundle: w.Bundle(t, c.key, c.predicateType, c.predicate, c.subject)})
				if !errors.Is(err, errInjected) {
					t.Fatalf("attach %s: error %v, want that of prod", c.predicateType, err)
				}
				for _, resolver := range []api.Reader{w, s} {
					if answer, _ := resolver.Resolve(t.Context(), prod("")); answer.Engine != nil && answer.Engine.Digest == best {
						t.Errorf("%T gives the engine after %s reached staging", resolver, c.predicateType)
					}
				}
			}
			w.refused(t, s)
			w.faults(t)
		})
	}
}

// What a verifier in staging says counts in prod only if prod trusts it.
func TestKeptEvidenceNeedsTrustWhereItCounts(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *backend.Backend) {
		c.Environments.Trust = append(c.Environments.Trust, trust.TrustEntry{
			Key: "verifier-of-staging", Roles: []evidence.Role{evidence.RoleVerifier}, Resources: []string{"oci://local/staging/"}})
	})
	r := w.Promoted(t, registrytest.Build{})
	best := chosen(t, w, "before")
	e, _ := r.Engine(best)
	_, err := w.Attach(t.Context(), api.Attachment{Environment: "staging", Model: r.Model, Release: r.Digest, Subject: best,
		Bundle: w.Bundle(t, "verifier-of-staging", evidence.PredicateParity, registrytest.Report(r, e, evidence.VerdictFail), best)})
	must(t, err)
	if chosen(t, w, "after a failure that prod does not trust") != best {
		t.Error("prod does not give the engine")
	}
	if _, ignored, err := w.Claims(t.Context(), "prod", r); err != nil || ignored.IgnoredCount > 0 || len(ignored.Ignored) > 0 {
		t.Errorf("prod ignores %+v, error %v, want nothing, since nothing was attached there", ignored, err)
	}
}

// crowded is content whose repositories never list what was put there, because others write the same list.
type crowded struct{ storage.Content }

func (c crowded) PutEvidence(ctx context.Context, repository string, b evidence.Bundle, subjects []artifact.Subject) ([]registry.Digest, error) {
	put, err := c.Content.PutEvidence(ctx, repository, b, subjects)
	if err == nil && strings.HasPrefix(repository, "prod/") {
		err = registry.Errorf(registry.CodeConflict, "%s is not listed", put[0])
	}
	return put, err
}

func (c crowded) Evidence(ctx context.Context, repository string, subject registry.Digest) iter.Seq2[evidence.Bundle, error] {
	return func(yield func(evidence.Bundle, error) bool) {
		for b, err := range c.Content.Evidence(ctx, repository, subject) {
			if err == nil && b.PredicateType == evidence.PredicateQuarantine {
				continue
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// Whoever keeps writing the list of referrers cannot keep a quarantine from being taken.
func TestQuarantineThatIsNeverListed(t *testing.T) {
	t.Parallel()
	w := setup(t, external("prod"))
	r := w.Promoted(t, registrytest.Build{})
	w.config.Content = crowded{w.config.Content}
	w.serve(t)
	w.AttachTo(t, "prod", r, r.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "wrong labels"})
	w.refused(t)
	_, err := w.Attach(t.Context(), api.Attachment{Environment: "prod", Model: r.Model, Release: r.Digest, Subject: r.Digest,
		Bundle: w.Bundle(t, "builder", evidence.PredicateSign, struct{ A int }{1}, r.Digest)})
	if registry.CodeOf(err) != registry.CodeConflict {
		t.Errorf("a signature that is not listed: error %v, want CodeConflict", err)
	}
}

// A caller fills the catalog as little as a repository, and what is kept may be attached again.
func TestKeptEvidenceIsBounded(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *backend.Backend) { c.MaxReferrers = 2 })
	r := w.Promoted(t, registrytest.Build{})
	attach := func(name, reason string) error {
		ctx := storage.WithPrincipal(t.Context(), storage.Principal{Name: name})
		_, err := w.Attach(ctx, api.Attachment{Environment: "prod", Model: r.Model, Release: r.Digest, Subject: r.Digest,
			Bundle: w.Bundle(t, "approver", evidence.PredicateQuarantine, evidence.Quarantine{Reason: reason}, r.Digest)})
		return err
	}
	for _, c := range []struct {
		caller, reason string
		code           registry.Code
	}{{"token:a", "1", ""}, {"token:a", "2", ""}, {"token:a", "3", registry.CodeForbidden}, {"token:b", "3", ""}} {
		if err := attach(c.caller, c.reason); registry.CodeOf(err) != c.code && (err != nil || c.code != "") {
			t.Errorf("quarantine %s of %s: error %v, want %q", c.reason, c.caller, err, c.code)
		}
	}
}

// Rows that somebody changed stop what rests on them, and rows that are gone are found.
func TestKeptEvidenceThatWasChanged(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	w.AttachTo(t, "prod", r, r.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "wrong labels"})
	rows, err := w.db.Adverse(t.Context(), r.Model, r.Digest)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, error %v, want one for each environment", len(rows), err)
	}
	for _, row := range rows {
		must(t, w.db.AdverseTable().Delete(t.Context(), row.Name()))
	}
	w.faults(t, "the catalog does not keep it", "the catalog does not keep it")
	must(t, w.db.KeepAdverse(t.Context(), rows[0])) // without its bytes
	w.faults(t, "was changed", "the catalog does not keep it")
	w.lose(rows[0].Bundle)
	if _, err := w.Resolve(t.Context(), prod("")); registry.CodeOf(err) != registry.CodeDigest {
		t.Errorf("resolve: error %v, want CodeDigest", err)
	}
}

// What was pushed past the service is kept from when a promotion names it.
func TestPromotionKeepsWhatWasPushed(t *testing.T) {
	t.Parallel()
	w := setup(t, external("staging", "prod"))
	r := w.proven(t, registrytest.Build{})
	push := func(q evidence.Quarantine) registry.Digest {
		t.Helper()
		put, err := w.config.Content.PutEvidence(t.Context(), "staging/"+r.Model,
			evidence.Bundle{Data: w.Bundle(t, "approver", evidence.PredicateQuarantine, q, r.Digest)}, r.Subjects()[:1])
		must(t, err)
		return put[0]
	}
	quarantine := push(evidence.Quarantine{Reason: "wrong labels"})
	lift := push(evidence.Quarantine{Reason: "they were right", Lifts: []registry.Digest{quarantine}})
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: r.Model}); err != nil {
		t.Fatal(err)
	}
	rows, err := w.db.Adverse(t.Context(), r.Model, r.Digest)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows are kept, error %v, want 2", len(rows), err)
	}
	w.lose(lift)
	chosen(t, w, "without the lift")
	again := push(evidence.Quarantine{Reason: "wrong again"})
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: r.Model}); registry.ExitCode(err) != 4 {
		t.Errorf("promote what was put in quarantine again: error %v, want CodePolicy", err)
	}
	w.lose(again)
	w.refused(t)
}
