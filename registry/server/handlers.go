package server

import (
	"net/http"
	"strconv"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

func (s server) environments(w http.ResponseWriter, r *request) error {
	environments, err := s.Registry.Environments(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, environments)
}

func (s server) heads(w http.ResponseWriter, r *request) error {
	heads, err := s.Registry.Heads(r.Context(), r.Values.Get("environment"), r.Values.Get("model"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, nonNil(heads))
}

func historyQuery() []string {
	return []string{"environment", "model", "kind", "subject", "after", "order"}
}

func (s server) history(w http.ResponseWriter, r *request) error {
	if order := r.Values.Get("order"); order != "" && order != "asc" && order != "desc" {
		return registry.Errorf(registry.CodeInvalid, "order %q: want asc or desc", order)
	}
	q := registry.HistoryQuery{
		Environment: r.Values.Get("environment"), Model: r.Values.Get("model"), Kind: registry.EventKind(r.Values.Get("kind")),
		Subject: registry.Digest(r.Values.Get("subject")), Descending: r.Values.Get("order") == "desc",
	}
	if after := r.Values.Get("after"); after != "" {
		n, err := strconv.ParseInt(after, 10, 64)
		if err != nil {
			return registry.Errorf(registry.CodeInvalid, "after %q: want a sequence number", after)
		}
		q.After = n
	}
	events, err := s.Registry.History(r.Context(), q)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, nonNil(events))
}

func (s server) release(w http.ResponseWriter, r *request) error {
	release, _, err := s.named(r)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, release)
}

// named is the release that a query names, and its environment.
func (s server) named(r *request) (registry.Release, string, error) {
	environment := r.Values.Get("environment")
	release, err := s.Registry.Release(r.Context(), environment, r.Name, r.Values.Get("reference"))
	return release, environment, err
}

func (s server) claims(w http.ResponseWriter, r *request) error {
	release, environment, err := s.named(r)
	if err != nil {
		return err
	}
	claims, ignored, err := s.Registry.Claims(r.Context(), environment, release)
	if err != nil {
		return err
	}
	body := wire.Claims{Claims: []wire.Claim{}, Ignored: nonNil(ignored)}
	for _, c := range claims {
		body.Claims = append(body.Claims, wire.Claim(c))
	}
	return answer(w, http.StatusOK, body)
}

func (s server) publish(w http.ResponseWriter, r *request) error {
	var body wire.Publication
	if err := read(r, &body); err != nil {
		return err
	}
	head, err := s.Registry.Publish(r.Context(), registry.Publication{Model: r.Name, Release: body.Release})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, head)
}

func (s server) attach(w http.ResponseWriter, r *request) error {
	var body wire.Attachment
	if err := read(r, &body); err != nil {
		return err
	}
	d, err := s.Registry.Attach(r.Context(), registry.Attachment{
		Environment: body.Environment, Model: r.Name, Release: body.Release, Subject: body.Subject, Bundle: body.Bundle})
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, wire.Attached{Bundle: d})
}

func (s server) promote(w http.ResponseWriter, r *request) error {
	var body wire.PromoteRequest
	if err := read(r, &body); err != nil {
		return err
	}
	promotion, err := s.Registry.Promote(r.Context(), registry.PromoteRequest{
		Model: r.Name, Reference: body.Reference, From: body.From, To: body.To, DryRun: body.DryRun})
	if err != nil {
		return refusal{error: err, promotion: &promotion}
	}
	return answer(w, http.StatusOK, promotion)
}

func (s server) rollback(w http.ResponseWriter, r *request) error {
	var body wire.RollbackRequest
	if err := read(r, &body); err != nil {
		return err
	}
	promotion, err := s.Registry.Rollback(r.Context(), registry.RollbackRequest{
		Environment: body.Environment, Model: r.Name, Version: body.Version, Reason: body.Reason})
	if err != nil {
		return refusal{error: err, promotion: &promotion}
	}
	return answer(w, http.StatusOK, promotion)
}

func (s server) releaseHold(w http.ResponseWriter, r *request) error {
	var body wire.HoldRelease
	if err := read(r, &body); err != nil {
		return err
	}
	if err := s.Registry.ReleaseHold(r.Context(), body.Environment, r.Name, body.Reason); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// nonNil makes an empty list of none, which JSON writes differently.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
