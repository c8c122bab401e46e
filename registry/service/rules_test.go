package service_test

import (
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// The history says by which rules a head moved: as the signed summary says it, and not otherwise when the
// rules change later. What moves no head says nothing of rules.
func TestEventsNameTheRules(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	claims, _, err := w.Claims(t.Context(), "prod", first)
	must(t, err)
	_, summary, ok := policy.FindVSA(claims, first, w.config.Environments.ResourceURI("prod", registrytest.Model))
	if !ok {
		t.Fatal("no summary")
	}
	w.config.Environments.List[1].Require = []string{policy.RequireSignature}
	w.config.Environments.Digest = digest.FromString("changed")
	w.serve(t)
	w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	_, err = w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "slow"})
	must(t, err)
	events, err := w.History(t.Context(), history.HistoryQuery{})
	must(t, err)
	var moved []history.Event
	for _, e := range events {
		if e.Kind == history.EventPromote || e.Kind == history.EventRollback {
			moved = append(moved, e)
			continue
		}
		if e.Policy != "" || e.Environments != "" {
			t.Errorf("%s names rules: %+v", e.Kind, e)
		}
	}
	if len(moved) != 3 {
		t.Fatalf("%d events moved the head, want 3", len(moved))
	}
	if e := moved[0]; !summary.Promotion.Policy.Names(e.Policy) || !summary.Policy.Digest.Names(e.Environments) {
		t.Errorf("the event names %s of %s, and the summary %v of %v", e.Policy, e.Environments, summary.Promotion.Policy, summary.Policy.Digest)
	}
	for _, e := range moved[1:] {
		if e.Policy == "" || e.Policy == moved[0].Policy || e.Environments != w.config.Environments.Digest {
			t.Errorf("%s after the rules changed names %s of %s", e.Kind, e.Policy, e.Environments)
		}
	}
	if moved[1].Policy != moved[2].Policy {
		t.Error("the rollback names other rules than the promotion before it")
	}
	w.chained(t)
}
