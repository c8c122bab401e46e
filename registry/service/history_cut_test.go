package service_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// last is the number of the newest event.
func (w *world) last(t *testing.T) int64 {
	t.Helper()
	standing, err := w.db.ModelState(t.Context(), "prod", registrytest.Model)
	must(t, err)
	return standing.Seq
}

// refusesToPromote wants the history to keep the model from prod, and nodes to be answered.
func (w *world) refusesToPromote(t *testing.T, says string) {
	t.Helper()
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); registry.ExitCode(err) != 5 ||
		!strings.Contains(err.Error(), says) {
		t.Errorf("promote: error %v (exit code %d), want 5 that says %q", err, registry.ExitCode(err), says)
	}
}

// The newest promotion that is deleted together with its head, or with the head put back, is
// found at start and by a check.
func TestPromotionThatWasDeleted(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]func(*backend.Backend){"local": nil, "on another registry": {external("prod")}} {
		for _, count := range []int{1, 2} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := setup(t, edits...)
				for range count - 1 {
					w.Promoted(t, registrytest.Build{Version: "0.9.0", Salt: "a"})
				}
				before := w.head(t)
				w.proven(t, registrytest.Build{})
				last := w.last(t)
				_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
				must(t, err)
				w.faults(t)
				w.db.CutHistory(last)
				w.db.LoseHead("prod", registrytest.Model)
				if before.Release != "" {
					w.db.RestoreHead(before)
				}
				w.chained(t)
				w.faults(t, "no event of the history")
				if cheap, err := w.service.HeadFaults(t.Context()); err != nil || len(cheap) != 1 {
					t.Errorf("at start: %+v, error %v, want the same", cheap, err)
				}
				if name == "local" {
					w.refusesToPromote(t, "no event of the history")
				}
				must(t, w.AcceptHistory(t.Context(), "prod", registrytest.Model, "a disk was replaced"))
				w.faults(t)
				_, err = w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
				must(t, err)
				w.faults(t)
				w.chained(t)
			})
		}
	}
}

// Evidence whose row was deleted is found, in prod and in staging. What somebody pushed to
// staging has none.
func TestEvidenceWhoseRowWasDeleted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	e := r.Engines[0]
	last := w.last(t)
	w.AttachTo(t, "staging", r, e.Digest, evidence.PredicateParity, registrytest.Report(r, e, evidence.VerdictFail))
	w.AttachTo(t, "prod", r, e.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "crashes"})
	w.faults(t)
	w.db.CutHistory(last)
	w.chained(t)
	const says = "no event of the history names it"
	w.faults(t, "vision/digits in prod: the evidence", "vision/digits in staging: the evidence")
	next := w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	w.faults(t, says, says)
	if _, err := w.Rollback(t.Context(),
		api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Version: "7.0.0", Reason: "x"}); !registry.HasCode(err,
		registry.CodeNotFound) {
		t.Errorf("a rollback is not stopped by the history: %v", err)
	}
	must(t, w.AcceptHistory(t.Context(), "staging", registrytest.Model, "a disk was replaced")) // the evidence is the same in prod
	w.faults(t)
	if p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil || p.Release != next.Digest {
		t.Errorf("promote after it was accepted: %+v, error %v", p, err)
	}

	pushed := evidence.Bundle{Data: w.Bundle(t, "verifier", evidence.PredicateParity,
		registrytest.Report(next, next.Engines[0], evidence.VerdictFail), next.Engines[0].Digest)}
	stored, err := w.config.Content.PutEvidence(t.Context(), "staging/"+r.Model, pushed, next.Subjects()[1:2])
	must(t, err)
	w.faults(t, says)
	w.refs.pushed = map[registry.Digest]bool{stored[0]: true}
	w.faults(t)
}

// The list of when evidence came in is an index: what somebody changes there is found, keeps
// the model from being promoted, and is made anew when that is accepted.
func TestOrderThatWasChanged(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.proven(t, registrytest.Build{})
	e := r.Engines[0]
	failed := w.AttachTo(t, "staging", r, e.Digest, evidence.PredicateParity, registrytest.Report(r, e, evidence.VerdictFail))
	saw := w.Seeing(t, registrytest.Report(r, e, evidence.VerdictPass))
	healed := w.AttachTo(t, "staging", r, e.Digest, evidence.PredicateParity, saw)
	w.faults(t)
	row := func(d registry.Digest) int64 {
		records, err := w.db.Recorded(t.Context(), r.Model, []registry.Digest{d})
		must(t, err)
		return records[d].Seq
	}
	at := row(failed)
	for name, wrong := range map[string]int64{"another row": row(healed), "the first row": 1, "no row": 0} {
		w.db.Misrecord(r.Model, failed, wrong)
		if got := row(failed); got != 0 {
			t.Errorf("%s: the failure is listed in row %d, which does not name it", name, got)
		}
		w.faults(t, "differs from the history in 1 places")
		if cheap, err := w.service.HeadFaults(t.Context()); err != nil || len(cheap) != 1 {
			t.Errorf("%s: at start %+v, error %v, want the same", name, cheap, err)
		}
		w.refusesToPromote(t, "differs from the history in 1 places")
		must(t, w.AcceptHistory(t.Context(), "staging", r.Model, "the list was restored by hand"))
		if got := row(failed); got != at {
			t.Errorf("%s: after it was accepted the failure is listed in row %d, want %d", name, got, at)
		}
		w.faults(t)
	}
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: r.Model}); err != nil {
		t.Errorf("promote after it was accepted: %v", err)
	}
}

// Nothing that breaks off, or is refused while it copies, looks like a row that was deleted.
func TestWhatBreaksOffIsNoFault(t *testing.T) {
	t.Parallel()
	f := &faults{writes: true}
	w := setup(t, func(c *backend.Backend) {
		c.Content, c.Catalog, c.Intents = faultyContent{c.Content, f}, faultyCatalog{c.Catalog, f}, faultyIntents{c.Intents, f}
	})
	w.Promoted(t, registrytest.Build{})
	w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	for at := 1; ; at++ {
		f.reset(at, at%2 == 0)
		_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
		f.reset(0, false)
		w.faults(t)
		if err == nil {
			break
		}
	}
	w.chained(t)
}
