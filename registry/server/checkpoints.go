package server

import (
	"net/http"
	"strconv"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/trust"
)

func withCheckpoints(s server) (Checkpoints, error) {
	if s.Checkpoints == nil {
		return nil, registry.Errorf(registry.CodeNotFound, "this service makes no checkpoints")
	}
	return s.Checkpoints, nil
}

// getCheckpoint returns a checkpoint of what the history is now. It tells no more than the number of
// events, so that everybody who may read anything can keep one.
func getCheckpoint(s server, r *request) (*response, error) {
	from, err := withCheckpoints(s)
	if err != nil {
		return nil, err
	}
	note, err := from.Checkpoint(r.Context())
	return noteResponse(note, err)
}

func listCheckpoints(s server, r *request) (*response, error) {
	from, err := withCheckpoints(s)
	if err != nil {
		return nil, err
	}
	cursor, limit, err := pageOf(r.Values)
	if err != nil {
		return nil, err
	}
	if cursor == "" {
		cursor = r.Values.Get("after")
	}
	after, err := sequence("after", cursor)
	if err != nil {
		return nil, err
	}
	kept, err := from.KeptAfter(r.Context(), after, limit+1)
	if err != nil {
		return nil, err
	}
	kept, next := cut(kept, limit, func(c trust.KeptCheckpoint) string { return strconv.FormatInt(c.Size, 10) })
	return page(r, kept, next)
}

// getProof returns the proof of an event that the caller may read, since the proof has its text.
func getProof(s server, r *request) (*response, error) {
	seq, err := sequence("event", r.Name)
	if err != nil || seq == 0 {
		return nil, noResource(r.Request)
	}
	events, err := s.Registry.History(r.Context(), history.HistoryQuery{After: seq - 1, Before: seq + 1, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, registry.Errorf(registry.CodeNotFound, "no event %d", seq)
	}
	from, err := withCheckpoints(s)
	if err != nil {
		return nil, err
	}
	note, err := from.Proof(r.Context(), seq)
	return noteResponse(note, err)
}

// noteResponse returns a signed note.
func noteResponse(note []byte, err error) (*response, error) {
	if err != nil {
		return nil, err
	}
	return &response{status: http.StatusOK, kind: rest.NoteType, body: note}, nil
}
