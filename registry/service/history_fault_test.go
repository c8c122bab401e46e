package service_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// faults wants as many faults as there are texts, each in its own.
func (w *world) faults(t *testing.T, says ...string) {
	t.Helper()
	found, err := w.HistoryFaults(t.Context())
	must(t, err)
	if len(found) != len(says) {
		t.Errorf("the faults are %+v, want %d", found, len(says))
		return
	}
	for i, text := range says {
		if !strings.Contains(found[i].Err().Error(), text) {
			t.Errorf("fault %d is %v, want one that says %q", i, found[i].Err(), text)
		}
	}
}

// use makes the world one over another database, as after a restore.
func (w *world) use(t *testing.T, db *mem.DB) {
	t.Helper()
	w.db, w.refs.RepositoryRecords = db, db
	w.config.Catalog, w.config.Records, w.config.Listing, w.config.Intents = db, db, db, db
	w.serve(t)
}

// Rows that were deleted from the end of the history leave heads that nothing explains. They
// are not promoted until somebody accepts it; everything else goes on.
func TestDeletedRowsStopPromotions(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	other := w.Promoted(t, registrytest.Build{Model: "other"})
	standing, err := w.db.ModelState(t.Context(), "prod", registrytest.Model)
	must(t, err)
	second := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	w.faults(t)
	w.db.CutHistory(standing.Seq)
	w.chained(t)
	const prod, staging = "vision/digits in prod: the head is 1.1.0", "vision/digits in staging: the head is 1.1.0"
	const unnamed = "no event of the history names it"
	w.faults(t, prod, "signed when the newest event had the hash", staging, unnamed)
	if cheap, err := w.service.HeadFaults(t.Context()); err != nil || len(cheap) != 3 {
		t.Errorf("heads alone: %+v, error %v, want the same three", cheap, err)
	}
	third := w.proven(t, registrytest.Build{Version: "1.2.0", Salt: "c"}) // and staging is where the history puts it again
	for _, dry := range []bool{true, false} {
		if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, DryRun: dry}); registry.ExitCode(err) != 5 ||
			!strings.Contains(err.Error(), prod) || len(registry.Hints(err)) == 0 {
			t.Errorf("promote: error %v, want CodeTrust that says what is missing", err)
		}
	}
	if answer, err := w.Resolve(t.Context(), api.ResolveQuery{Environment: "prod",
		Model: registrytest.Model, Node: registrytest.Node("v3")}); err != nil || answer.Release != second.Digest {
		t.Errorf("resolve gives %+v, error %v, want the head", answer, err)
	}
	again := w.proven(t, registrytest.Build{Model: "other", Version: "1.1.0", Salt: "d"})
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: "other"}); err != nil {
		t.Errorf("promote another model from %s to %s: %v", other.Tag(), again.Tag(), err)
	}
	if err := w.AcceptHistory(t.Context(), "prod", registrytest.Model, " "); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("accept without a reason: error %v, want CodeInvalid", err)
	}
	must(t, w.AcceptHistory(t.Context(), "prod", registrytest.Model, "the disk was full"))
	w.faults(t)
	if err := w.AcceptHistory(t.Context(), "prod", registrytest.Model, "again"); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("accept what is explained: error %v, want CodeInvalid", err)
	}
	events, err := w.History(t.Context(), history.HistoryQuery{Environment: "prod", Kind: history.EventAccept})
	if err != nil || len(events) != 1 || events[0].Reason != "the disk was full" ||
		events[0].Release != second.Digest || !slices.Contains(events[0].Evidence, second.Digest) {
		t.Errorf("history has %+v, error %v, want one row that names the head and what was not explained", events, err)
	}
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil || w.head(t).Release != third.Digest {
		t.Errorf("promote after it was accepted: error %v", err)
	}
	if _, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod",
		Model: registrytest.Model, Version: first.Version, Reason: "x"}); err != nil {
		t.Errorf("roll back to what the history knows: %v", err)
	}
	w.faults(t)
	w.chained(t)
}

// A catalog that was restored from a backup is older than the summaries on another registry.
func TestRestoredCatalogFindsNewerSummaries(t *testing.T) {
	t.Parallel()
	w := setup(t, external("prod"))
	first := w.Promoted(t, registrytest.Build{})
	second := w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	backup := w.db.Clone()
	w.AttachTo(t, "staging", second, second.Digest, evidence.PredicateApproval, approved()) // what the summary names
	_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	must(t, err)
	w.faults(t)

	w.use(t, backup)
	if w.head(t).Release != first.Digest {
		t.Fatalf("the head is %+v, want that of the backup", w.head(t))
	}
	w.faults(t, "of 1.1.0 was signed when the newest event had the hash")
	if cheap, err := w.service.HeadFaults(t.Context()); err != nil || len(cheap) != 1 {
		t.Errorf("heads alone: %+v, error %v, want the same", cheap, err)
	}
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); registry.ExitCode(err) != 5 ||
		!strings.Contains(err.Error(), "history has no such event") {
		t.Errorf("promote what was promoted after the backup: error %v, want CodeTrust", err)
	}
	if answer, err := w.Resolve(t.Context(), api.ResolveQuery{Environment: "prod",
		Model: registrytest.Model, Node: registrytest.Node("v3")}); err != nil || answer.Release != first.Digest {
		t.Errorf("resolve gives %+v, error %v, want the head of the backup", answer, err)
	}
	must(t, w.AcceptHistory(t.Context(), "prod", registrytest.Model, "restored from Tuesday's backup"))
	w.faults(t)
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil ||
		w.head(t).Release != second.Digest || !w.mirrorMatches(t, "prod", second) {
		t.Errorf("promote after it was accepted: error %v, head %+v", err, w.head(t))
	}
	w.faults(t)
	w.chained(t)
}

// The head of a catalog that was restored may have been promoted once more after the backup. The other registry then
// has a summary of it that names a row which is gone, and nothing else is promoted over that until somebody accepts it.
func TestRestoredCatalogFindsNewerSummariesOfItsHead(t *testing.T) {
	t.Parallel()
	w := setup(t, external("prod"))
	first := w.Promoted(t, registrytest.Build{})
	backup := w.db.Clone()
	w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: first.Version, Downgrade: true})
	must(t, err)

	w.use(t, backup)
	next := w.proven(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
	w.refusesToPromote(t, "history has no such event")
	if w.head(t).Release != first.Digest {
		t.Errorf("the head is %+v, want that of the backup", w.head(t))
	}
	must(t, w.AcceptHistory(t.Context(), "prod", registrytest.Model, "restored from Tuesday's backup"))
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil || w.head(t).Release != next.Digest {
		t.Errorf("promote after it was accepted: error %v, head %+v", err, w.head(t))
	}
}

// A promotion that was killed leaves a summary on the other registry, and another promotion replaces its intent. It can
// be run again: this is no deleted row.
func TestPromoteAgainAfterAnotherBegan(t *testing.T) {
	t.Parallel()
	w := setup(t, external("prod"))
	r := w.proven(t, registrytest.Build{})
	works := w.config.Catalog
	w.config.Catalog = fullCatalog{works}
	w.serve(t)
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); !errors.Is(err, errInjected) {
		t.Fatalf("promote: error %v, want that the catalog is full", err)
	}
	w.config.Catalog = works
	w.serve(t)
	other := w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	must(t, w.db.Begin(t.Context(), history.Intent{Environment: "prod", Model: other.Model, From: "staging", Release: other.Digest}))
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: r.Model, Ref: r.Version}); err != nil || w.head(t).Release != r.Digest {
		t.Errorf("promote again: error %v, head %+v; want %s", err, w.head(t), r.Tag())
	}
}

// fullCatalog records nothing.
type fullCatalog struct{ storage.Catalog }

func (fullCatalog) Apply(context.Context, storage.Change) (history.Event, error) {
	return history.Event{}, errInjected
}
