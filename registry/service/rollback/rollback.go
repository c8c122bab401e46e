// Package rollback moves heads back to earlier releases, and lists the changes for nodes.
package rollback

import (
	"context"
	"errors"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/documents"
	"mlpromote.dev/mlpromote/registry/service/heads"
	"mlpromote.dev/mlpromote/registry/service/lookup"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Rollback moves the head to an earlier head of the same environment. The summary that the
// release had then allows it now. So neither the age of a report nor a newer policy stops an
// operator; changed bytes, a quarantine and revoked keys do.
func Rollback(ctx context.Context, s *backend.Backend, req api.RollbackRequest) (api.Promotion, error) {
	return runRetreat(ctx, s, retreat{RollbackRequest: req})
}

// Preview decides about a rollback without reading the bytes of the release.
func Preview(ctx context.Context, s *backend.Backend, req api.RollbackRequest) (api.Promotion, error) {
	req.DryRun, req.Replaces, req.Reason = true, nil, "preview" // a reason is required, and this one is stored nowhere
	return runRetreat(ctx, s, retreat{RollbackRequest: req, preview: true})
}

// runRetreat carries out a rollback. A dry run and a preview decide it only.
func runRetreat(ctx context.Context, s *backend.Backend, r retreat) (api.Promotion, error) {
	req := r.RollbackRequest
	environment, err := s.Find(req.Environment)
	if err != nil {
		return api.Promotion{}, err
	}
	if !environment.Protected() {
		return api.Promotion{}, registry.Errorf(registry.CodeInvalid,
			"builds write to %s directly, so it has no rollback: name an environment with from", req.Environment)
	}
	if err := backend.CheckReason("rollback", "it stays in the history", req.Reason); err != nil {
		return api.Promotion{}, err
	}
	head, err := backend.ExistingHead(ctx, s, req.Environment, req.Model)
	if err != nil {
		return api.Promotion{}, err
	}
	if !req.DryRun {
		if p, finished, err := finishRollback(ctx, s, environment, req); err != nil || finished {
			return p, err
		}
	}
	r.environment, r.from = environment, head
	err = backend.Decide(func() error { return rollback(ctx, s, &r) })
	if r.announced.Release == "" {
		return r.promotion, err
	}
	return r.promotion, heads.GiveUp(ctx, s, environment, r.announced, err)
}

// retreat is a rollback in progress.
type retreat struct {
	api.RollbackRequest
	environment policy.Environment
	from        history.Head    // the head to leave
	preview     bool            // no bytes are read; only with DryRun
	rehashed    registry.Digest // the release whose bytes were checked
	announced   history.Intent  // of the last attempt
	promotion   api.Promotion
}

// finishRollback writes the mirror of an interrupted rollback whose head had already moved. A
// repeated request finishes that rollback instead of going back one more head.
func finishRollback(
	ctx context.Context, s *backend.Backend,
	e policy.Environment,
	req api.RollbackRequest,
) (api.Promotion, bool, error) {
	intent, head, left, err := heads.Unfinished(ctx, s, e, req.Model)
	if err != nil || !left || intent.From != e.Name || req.Version != "" && req.Version != head.Version {
		return api.Promotion{}, false, err
	}
	p := api.Promotion{
		Environment: e.Name,
		Model:       head.Model,
		Version:     head.Version,
		Release:     head.Release,
		Unchanged:   true,
	}
	return p, true, heads.WriteMirror(ctx, s, e, head.Model)
}

// rollback selects the earlier head and moves the head there.
func rollback(ctx context.Context, s *backend.Backend, m *retreat) error {
	standing, err := s.Catalog.ModelState(ctx, m.Environment, m.Model)
	if err != nil {
		return err
	}
	if m.Version == "" && standing.Head.Release != m.from.Release {
		return heads.HeadChanged(m.from, standing.Head)
	}
	if err := heads.CheckSeen(m.Replaces, m.Environment, m.Model, standing.Head); err != nil {
		return err
	}
	target, err := earlier(ctx, s, standing.Head, m.Version)
	if err != nil {
		return err
	}
	r, err := lookup.Release(ctx, s, m.Environment, m.Model, string(target))
	if err != nil {
		return err
	}
	m.promotion = api.Promotion{
		Environment: m.Environment,
		Model:       m.Model,
		Version:     r.Tag(),
		Release:     r.Digest,
		Previous:    standing.Head.Release,
	}
	if m.promotion.Decision, err = mayReturn(ctx, s, m, r); err != nil {
		return err
	}
	if err := usedUp(ctx, s, standing.Head, r); err != nil {
		return err
	}
	m.promotion.Warnings, m.promotion.Nodes = consequences(ctx, s, m.RollbackRequest, m.environment, standing.Head, r)
	if m.DryRun || m.preview {
		return nil
	}
	m.announced = history.Intent{Environment: m.Environment, Model: m.Model, From: m.Environment, Release: r.Digest}
	if err := heads.Announce(ctx, s, m.environment, m.announced); err != nil {
		return err
	}
	policy, err := backend.PolicyDigest(m.environment)
	if err != nil {
		return err
	}
	basis := history.NewDecisionBasis(standing, s.Environments, r)
	return heads.Move(ctx, s, m.environment, storage.Change{
		Event: history.Event{Time: s.Now(), Kind: history.EventRollback, Environment: m.Environment, Model: m.Model,
			Version: r.Tag(), Release: r.Digest, Previous: standing.Head.Release, Reason: m.Reason,
			Policy: policy, Environments: s.Environments.Digest},
		DecisionBasis: &basis,
		Move:          &storage.HeadMove{Hold: m.Reason},
		Needs:         backend.Needs(m.environment, m.Model, r.Digest),
		Tags: []storage.TagMove{
			{Repository: registry.Repository(m.Environment, m.Model), Tag: artifact.HeadTag, Digest: r.Digest},
		},
	})
}

// earlier returns the head to go back to: that of the version, or the one that the current head
// replaced when it was promoted.
func earlier(ctx context.Context, s *backend.Backend, head history.Head, version string) (registry.Digest, error) {
	events, err := s.History(ctx, history.HistoryQuery{
		Environment: head.Environment, Model: head.Model, Kind: history.EventPromote, Descending: true})
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
		return "", registry.Errorf(registry.CodeNotFound, "%s has no earlier head in %s than %s", head.Model,
			head.Environment, head.Version)
	}
	if version == head.Version {
		return "", registry.Errorf(registry.CodeInvalid, "%s in %s is already at %s", head.Model, head.Environment, version)
	}
	return "", registry.Errorf(registry.CodeNotFound,
		"%s was never at %s in %s: a rollback goes only to an earlier head", head.Model, version, head.Environment)
}

// usedUp refuses a release that a break-glass promotion let in, unless the head replaced it: what two
// approvers skipped for one promotion does not let one person bring it back for ever.
func usedUp(ctx context.Context, s *backend.Backend, head history.Head, r artifact.Release) error {
	claims, _, err := lookup.Claims(ctx, s, head.Environment, r)
	if err != nil {
		return err
	}
	_, v, _ := policy.FindVSA(claims, r, s.Resource(head.Environment, r.Model))
	if v.Promotion.Skipped == nil {
		return nil
	}
	replaced, err := earlier(ctx, s, head, "")
	if registry.HasCode(err, registry.CodeNotFound) || err == nil && replaced != r.Digest {
		return registry.Errorf(registry.CodePolicy, "%s came to %s by break-glass on %s, which counted once: promote it again",
			r.Tag(), head.Environment, v.TimeVerified.UTC().Format(time.DateOnly))
	}
	return err
}

// mayReturn checks the bytes of a release that was a head before, unless this is a preview, and whether it may
// still be used.
func mayReturn(ctx context.Context, s *backend.Backend, m *retreat, r artifact.Release) (policy.Decision, error) {
	var rehash error
	if !m.preview && m.rehashed != r.Digest {
		if rehash = s.Content.Rehash(ctx, registry.Repository(m.Environment, r.Model), r); rehash == nil {
			m.rehashed = r.Digest
		}
	}
	claims, ignored, err := lookup.Claims(ctx, s, m.Environment, r)
	if err != nil {
		return policy.Decision{}, errors.Join(rehash, err)
	}
	restrictions, err := documents.RestrictionsIn(ctx, s, m.Environment)
	if err != nil {
		return policy.Decision{}, errors.Join(rehash, err)
	}
	decision := policy.CheckReturn(s.Resource(m.Environment, r.Model), r, claims, restrictions)
	decision.IgnoreAll(ignored)
	return decision, errors.Join(rehash, heads.CheckDecision(m.Environment, decision))
}
