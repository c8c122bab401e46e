package service

import (
	"context"
	"errors"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Rollback moves the head to an earlier head of the same environment. The summary
// that the release had then is what allows it now, so that the age of a report or a
// newer policy does not stand in the way of an operator; signatures, bytes and a
// quarantine do.
func (s *Service) Rollback(ctx context.Context, req registry.RollbackRequest) (registry.Promotion, error) {
	environment, err := s.find(req.Environment)
	if err != nil {
		return registry.Promotion{}, err
	}
	if !environment.Protected() {
		return registry.Promotion{}, registry.Errorf(registry.CodeInvalid, "%s is written by builds: a rollback is for an environment with from", req.Environment)
	}
	if strings.TrimSpace(req.Reason) == "" {
		return registry.Promotion{}, registry.Errorf(registry.CodeInvalid, "rollback: a reason is required, it stays in the history (--reason TEXT)")
	}
	head, err := s.Catalog.Head(ctx, req.Environment, req.Model)
	if err != nil {
		return registry.Promotion{}, registry.Errorf(registry.CodeOf(err), "%s in %s: %w", req.Model, req.Environment, err)
	}
	if p, finished, err := s.finishRollback(ctx, environment, head, req.Version); err != nil || finished {
		return p, err
	}
	return s.rollback(ctx, environment, head, req)
}

// finishRollback writes the mirror of a rollback that broke off after its head had moved.
// The same request again means that one, and not one further back.
func (s *Service) finishRollback(ctx context.Context, e registry.Environment, head registry.Head, version string) (registry.Promotion, bool, error) {
	intent, left, err := s.unfinished(ctx, e, head.Model)
	if err != nil || !left || intent.From != e.Name || version != "" && version != head.Version {
		return registry.Promotion{}, false, err
	}
	p := registry.Promotion{Environment: e.Name, Model: head.Model, Version: head.Version, Release: head.Release, Already: true}
	return p, true, s.mirror(ctx, e, head.Model)
}

func (s *Service) rollback(ctx context.Context, environment registry.Environment, head registry.Head, req registry.RollbackRequest) (registry.Promotion, error) {
	target, err := s.earlier(ctx, head, req.Version)
	if err != nil {
		return registry.Promotion{}, err
	}
	r, err := s.Release(ctx, req.Environment, req.Model, string(target))
	if err != nil {
		return registry.Promotion{}, err
	}
	p := registry.Promotion{Environment: req.Environment, Model: req.Model, Version: r.Tag(), Release: r.Digest, Previous: head.Release}
	if p.Decision, err = s.mayReturn(ctx, req.Environment, r); err != nil {
		return p, err
	}
	intent := registry.Intent{Environment: req.Environment, Model: req.Model, From: req.Environment, Release: r.Digest, Begun: s.Now()}
	if err := s.announce(ctx, environment, intent); err != nil {
		return p, err
	}
	return p, s.move(ctx, environment, registry.Change{
		Event: registry.Event{Time: s.Now(), Kind: registry.EventRollback, Environment: req.Environment, Model: req.Model,
			Version: r.Tag(), Release: r.Digest, Previous: head.Release, Reason: req.Reason},
		Move: &registry.HeadMove{Expect: head.Release, Hold: req.Reason},
		Tags: []registry.TagMove{{Repository: registry.Repository(req.Environment, req.Model), Tag: registry.HeadTag, Digest: r.Digest}},
	})
}

// earlier finds the head to return to: that of the version, or the one that the
// present head replaced when it was promoted.
func (s *Service) earlier(ctx context.Context, head registry.Head, version string) (registry.Digest, error) {
	events, err := s.History(ctx, registry.HistoryQuery{
		Environment: head.Environment, Model: head.Model, Kind: registry.EventPromote, Descending: true})
	if err != nil {
		return "", err
	}
	for _, e := range events {
		switch {
		case version == "" && e.Release == head.Release && e.Previous != "":
			return e.Previous, nil
		case version != "" && e.Version == version && e.Release != head.Release:
			return e.Release, nil
		}
	}
	if version == "" {
		return "", registry.Errorf(registry.CodeNotFound, "%s has no earlier head in %s than %s", head.Model, head.Environment, head.Version)
	}
	if version == head.Version {
		return "", registry.Errorf(registry.CodeInvalid, "%s in %s is at %s already", head.Model, head.Environment, version)
	}
	return "", registry.Errorf(registry.CodeNotFound, "%s was never at %s in %s: a rollback goes only to an earlier head", head.Model, version, head.Environment)
}

// mayReturn checks bytes, signatures, quarantine and the summary of a release that
// was a head before.
func (s *Service) mayReturn(ctx context.Context, environment string, r registry.Release) (registry.Decision, error) {
	rehash := s.Content.Rehash(ctx, registry.Repository(environment, r.Model), r)
	claims, ignored, err := s.Claims(ctx, environment, r)
	if err != nil {
		return registry.Decision{}, errors.Join(rehash, err)
	}
	decision := registry.Policy{Require: []string{registry.RequireSignature}}.Check(r, claims)
	decision.Ignored = append(decision.Ignored, ignored...)
	return decision, errors.Join(rehash, unmet(environment, decision), s.summarized(environment, r, claims))
}

// summarized refuses a release that no trusted promoter allowed in the environment.
func (s *Service) summarized(environment string, r registry.Release, claims []registry.Claim) error {
	if _, _, ok := registry.FindVSA(claims, r, s.resource(environment, r.Model)); ok {
		return nil
	}
	return registry.Errorf(registry.CodePolicy, "%s %s in %s has no verification summary of a trusted promoter: promote it again", r.Model, r.Tag(), environment)
}

// ReleaseHold lets promotions move a held head again.
func (s *Service) ReleaseHold(ctx context.Context, environment, model, reason string) error {
	head, err := s.Catalog.Head(ctx, environment, model)
	if err != nil {
		return registry.Errorf(registry.CodeOf(err), "%s in %s: %w", model, environment, err)
	}
	if head.Hold == "" {
		return registry.Errorf(registry.CodeInvalid, "%s in %s is not held", model, environment)
	}
	if strings.TrimSpace(reason) == "" {
		return registry.Errorf(registry.CodeInvalid, "hold release: a reason is required, it stays in the history (--reason TEXT)")
	}
	_, err = s.apply(ctx, registry.Change{
		Event: registry.Event{Time: s.Now(), Kind: registry.EventHoldRelease, Environment: environment, Model: model,
			Version: head.Version, Release: head.Release, Previous: head.Release, Reason: reason},
		Move: &registry.HeadMove{Expect: head.Release},
	})
	return err
}
