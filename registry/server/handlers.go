package server

import (
	"maps"
	"net/http"
	"slices"
	"strconv"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

func (s server) environments(w http.ResponseWriter, r *http.Request) error {
	if _, err := asked(r); err != nil {
		return err
	}
	environments, err := s.Registry.Environments(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, environments)
}

func (s server) heads(w http.ResponseWriter, r *http.Request) error {
	values, err := asked(r, "environment", "model")
	if err != nil {
		return err
	}
	heads, err := s.Registry.Heads(r.Context(), values.Get("environment"), values.Get("model"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, nonNil(heads))
}

func (s server) history(w http.ResponseWriter, r *http.Request) error {
	values, err := asked(r, "environment", "model", "kind", "subject", "after", "order")
	if err != nil {
		return err
	}
	if order := values.Get("order"); order != "" && order != "asc" && order != "desc" {
		return registry.Errorf(registry.CodeInvalid, "order %q: want asc or desc", order)
	}
	q := registry.HistoryQuery{
		Environment: values.Get("environment"), Model: values.Get("model"), Kind: registry.EventKind(values.Get("kind")),
		Subject: registry.Digest(values.Get("subject")), Descending: values.Get("order") == "desc",
	}
	if after := values.Get("after"); after != "" {
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

// model dispatches what stands below the name of a model.
func (s server) model(w http.ResponseWriter, r *http.Request) error {
	model, operation, err := wire.ParseModelPath(r.URL.Path)
	if err != nil {
		return err
	}
	type handlers = map[string]func(w http.ResponseWriter, r *http.Request, model string) error
	methods, ok := map[string]handlers{
		wire.OpResolve:      {http.MethodGet: s.resolveFacts, http.MethodPost: s.resolveNode},
		wire.OpReleases:     {http.MethodGet: s.release},
		wire.OpClaims:       {http.MethodGet: s.claims},
		wire.OpPublications: {http.MethodPost: s.publish},
		wire.OpEvidence:     {http.MethodPost: s.attach},
		wire.OpPromotions:   {http.MethodPost: s.promote},
		wire.OpRollbacks:    {http.MethodPost: s.rollback},
		wire.OpHoldReleases: {http.MethodPost: s.releaseHold},
	}[operation]
	if !ok {
		return registry.Errorf(registry.CodeNotFound, "no resource %s", r.URL.Path)
	}
	handle, ok := methods[r.Method]
	if !ok {
		return notAllowed(w, r, slices.Sorted(maps.Keys(methods))...)
	}
	return handle(w, r, model)
}

func (s server) release(w http.ResponseWriter, r *http.Request, model string) error {
	release, _, err := s.named(r, model)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, release)
}

// named is the release that a query names, and its environment.
func (s server) named(r *http.Request, model string) (registry.Release, string, error) {
	values, err := asked(r, "environment", "reference")
	if err != nil {
		return registry.Release{}, "", err
	}
	environment := values.Get("environment")
	release, err := s.Registry.Release(r.Context(), environment, model, values.Get("reference"))
	return release, environment, err
}

func (s server) claims(w http.ResponseWriter, r *http.Request, model string) error {
	release, environment, err := s.named(r, model)
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

func (s server) publish(w http.ResponseWriter, r *http.Request, model string) error {
	var body wire.Publication
	if err := read(r, &body); err != nil {
		return err
	}
	head, err := s.Registry.Publish(r.Context(), registry.Publication{Model: model, Release: body.Release})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, head)
}

func (s server) attach(w http.ResponseWriter, r *http.Request, model string) error {
	var body wire.Attachment
	if err := read(r, &body); err != nil {
		return err
	}
	d, err := s.Registry.Attach(r.Context(), registry.Attachment{
		Environment: body.Environment, Model: model, Release: body.Release, Subject: body.Subject, Bundle: body.Bundle})
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, wire.Attached{Bundle: d})
}

func (s server) promote(w http.ResponseWriter, r *http.Request, model string) error {
	var body wire.PromoteRequest
	if err := read(r, &body); err != nil {
		return err
	}
	promotion, err := s.Registry.Promote(r.Context(), registry.PromoteRequest{
		Model: model, Reference: body.Reference, From: body.From, To: body.To, DryRun: body.DryRun})
	if err != nil {
		return refusal{error: err, promotion: &promotion}
	}
	return answer(w, http.StatusOK, promotion)
}

func (s server) rollback(w http.ResponseWriter, r *http.Request, model string) error {
	var body wire.RollbackRequest
	if err := read(r, &body); err != nil {
		return err
	}
	promotion, err := s.Registry.Rollback(r.Context(), registry.RollbackRequest{
		Environment: body.Environment, Model: model, Version: body.Version, Reason: body.Reason})
	if err != nil {
		return refusal{error: err, promotion: &promotion}
	}
	return answer(w, http.StatusOK, promotion)
}

func (s server) releaseHold(w http.ResponseWriter, r *http.Request, model string) error {
	var body wire.HoldRelease
	if err := read(r, &body); err != nil {
		return err
	}
	if err := s.Registry.ReleaseHold(r.Context(), body.Environment, model, body.Reason); err != nil {
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
