package server_test

import (
	"context"
	"net/http"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/trust"
)

// hidden is a registry whose events the caller may not read.
type hidden struct{ api.Interface }

func (hidden) History(context.Context, history.HistoryQuery) ([]history.Event, error) {
	return nil, nil
}

// unasked makes no checkpoints, and is not to be asked for proofs.
type unasked struct{ t *testing.T }

func (u unasked) Checkpoint(context.Context) ([]byte, error) { return []byte("note"), nil }

func (u unasked) KeptAfter(context.Context, int64, int) ([]trust.KeptCheckpoint, error) {
	return nil, nil
}

func (u unasked) Proof(_ context.Context, seq int64) ([]byte, error) {
	u.t.Errorf("the proof of event %d was asked for, which its caller may not read", seq)
	return nil, nil
}

// A proof has the text of its event, so nobody gets that of an event that is hidden from them.
func TestNoProofOfHiddenEvents(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *server.Config) { c.Registry, c.Checkpoints = hidden{c.Registry}, unasked{t} })
	w.Promoted(t, registrytest.Build{})
	wantProblem(t, "a hidden event", w.do(http.MethodGet, "/api/v1/history/proofs/1", ""), http.StatusNotFound, registry.CodeNotFound)
	wantProblem(t, "event 0", w.do(http.MethodGet, "/api/v1/history/proofs/0", ""), http.StatusNotFound, registry.CodeNotFound)
	wantProblem(t, "no number", w.do(http.MethodGet, "/api/v1/history/proofs/x", ""), http.StatusNotFound, registry.CodeNotFound)
	if got := w.do(http.MethodGet, "/api/v1/history/checkpoint", ""); got.Code != http.StatusOK || got.Body.String() != "note" {
		t.Errorf("a checkpoint: %d %s, want the note", got.Code, got.Body)
	}
	without := setup(t)
	wantProblem(t, "a service without checkpoints",
		without.do(http.MethodGet, "/api/v1/history/checkpoint", ""), http.StatusNotFound, registry.CodeNotFound)
}
