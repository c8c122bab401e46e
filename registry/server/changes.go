package server

import (
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

func (s server) publish(r *request) (*response, error) {
	var body wire.Publication
	if err := read(r, &body); err != nil {
		return nil, err
	}
	head, err := s.Registry.Publish(r.Context(), registry.Publication{Model: r.Name, Release: body.Release})
	if err != nil {
		return nil, err
	}
	return ok(head)
}

func (s server) attach(r *request) (*response, error) {
	var body wire.Attachment
	if err := read(r, &body); err != nil {
		return nil, err
	}
	d, err := s.Registry.Attach(r.Context(), registry.Attachment{
		Environment: body.Environment, Model: r.Name, Release: body.Release, Subject: body.Subject, Bundle: body.Bundle, Figures: body.Figures})
	if err != nil {
		return nil, err
	}
	return answer(http.StatusCreated, wire.Attached{Bundle: d})
}

func (s server) attest(r *request) (*response, error) {
	var body wire.Attestation
	if err := read(r, &body); err != nil {
		return nil, err
	}
	attested, err := s.Registry.Attest(r.Context(), registry.AttestRequest{
		Kind: body.Kind, Environment: body.Environment, Model: r.Name, Release: body.Release, Subject: body.Subject,
		Comment: body.Comment, Expires: body.ExpiresOn, Accepts: body.Accepts})
	if err != nil {
		return nil, err
	}
	return answer(http.StatusCreated, attested)
}

func (s server) promote(r *request) (*response, error) {
	var body wire.PromoteRequest
	if err := read(r, &body); err != nil {
		return nil, err
	}
	promotion, err := s.Registry.Promote(r.Context(), registry.PromoteRequest{
		Model: r.Name, Ref: body.Ref, From: body.From, To: body.To, DryRun: body.DryRun, BreakGlass: body.BreakGlass, Downgrade: body.Downgrade,
		Reason: body.Reason, Replaces: body.Replaces})
	if err != nil {
		return nil, refusal{error: err, promotion: &promotion}
	}
	return ok(promotion)
}

func (s server) rollback(r *request) (*response, error) {
	var body wire.RollbackRequest
	if err := read(r, &body); err != nil {
		return nil, err
	}
	promotion, err := s.Registry.Rollback(r.Context(), registry.RollbackRequest{
		Environment: body.Environment, Model: r.Name, Version: body.Version, Reason: body.Reason,
		Node: body.Node, DryRun: body.DryRun, Replaces: body.Replaces})
	if err != nil {
		return nil, refusal{error: err, promotion: &promotion}
	}
	return ok(promotion)
}

func (s server) setHold(r *request) (*response, error) {
	var body wire.Hold
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if err := s.Registry.SetHold(r.Context(), body.Environment, r.Name, body.Reason); err != nil {
		return nil, err
	}
	return done()
}

func (s server) acceptHistory(r *request) (*response, error) {
	var body wire.HistoryAcceptance
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if err := s.Registry.AcceptHistory(r.Context(), body.Environment, r.Name, body.Reason); err != nil {
		return nil, err
	}
	return done()
}

func (s server) releaseHold(r *request) (*response, error) {
	var body wire.HoldRelease
	if err := read(r, &body); err != nil {
		return nil, err
	}
	release := registry.HoldRelease{Environment: body.Environment, Model: r.Name, Reason: body.Reason, Seen: body.Seen}
	if err := s.Registry.ReleaseHold(r.Context(), release); err != nil {
		return nil, err
	}
	return done()
}
