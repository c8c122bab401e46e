package service_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// A release of which an engine is lost can be put in quarantine by its own digest, in every environment that has it. Nothing
// else is attached to it, and the quarantine counts when it was repaired.
func TestQuarantineOfADamagedRelease(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	blob, size, err := w.blobs.Open(t.Context(), r.Engines[1].Digest)
	must(t, err)
	lost, err := io.ReadAll(blob)
	must(t, err)
	must(t, w.blobs.Delete(t.Context(), r.Engines[1].Digest))
	if _, err := w.Release(t.Context(), "prod", r.Model, string(r.Digest)); err == nil {
		t.Fatal("the release can be read, want one that is damaged")
	}
	attach := func(predicateType string, predicate any, subject registry.Digest) error {
		role, _ := evidence.RoleFor(predicateType)
		_, err := w.Attach(t.Context(), api.Attachment{Environment: "prod", Model: r.Model, Release: r.Digest, Subject: subject,
			Bundle: w.Bundle(t, string(role), predicateType, predicate, subject)})
		return err
	}
	quarantine := evidence.Quarantine{Reason: "an engine is lost", IssuedOn: time.Now().Add(-time.Minute).UTC()}
	if err := attach(evidence.PredicateSign, struct{}{}, r.Digest); err == nil {
		t.Error("a signature was attached to a release that cannot be read")
	}
	if err := attach(evidence.PredicateQuarantine, quarantine, r.Engines[0].Digest); err == nil {
		t.Error("a quarantine of an engine was attached, and nothing says that the release has it")
	}
	must(t, attach(evidence.PredicateQuarantine, quarantine, r.Digest))
	events, err := w.History(t.Context(), history.HistoryQuery{Kind: history.EventAttach, Subject: r.Digest, Descending: true, Limit: 2})
	must(t, err)
	for i, environment := range []string{"staging", "prod"} { // newest first
		if e := events[i]; e.Environment != environment || e.Release != r.Digest || e.Version != r.Tag() || e.Reason != quarantine.Reason {
			t.Errorf("event %+v, want the quarantine of %s in %s", e, r.Tag(), environment)
		}
	}
	must(t, w.blobs.Put(t.Context(), r.Engines[1].Digest, size, bytes.NewReader(lost)))
	for _, environment := range []string{"staging", "prod"} {
		claims, _, err := w.Claims(t.Context(), environment, r)
		must(t, err)
		if got := evidence.Quarantines(r, claims, r.Digest); len(got) != 1 {
			t.Errorf("%s has %d quarantines after the repair, want 1", environment, len(got))
		}
	}
}

// What the history does not name, or no environment has, is not there for a quarantine either.
func TestQuarantineOfAReleaseThatIsNotThere(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Build(t, registrytest.Build{})
	stored := registrytest.Build{Version: "1.1.0", Salt: "unpublished"}.Store(t, w.Parts)
	must(t, w.blobs.Delete(t.Context(), stored))
	for name, d := range map[string]registry.Digest{"not published": stored, "no manifest": r.Limits} {
		_, err := w.Attach(t.Context(), api.Attachment{Environment: "staging", Model: r.Model, Release: d, Subject: d,
			Bundle: w.Bundle(t, "approver", evidence.PredicateQuarantine, evidence.Quarantine{Reason: "bad", IssuedOn: time.Now().UTC()}, d)})
		if err == nil {
			t.Errorf("%s: attached, want an error", name)
		}
	}
}
