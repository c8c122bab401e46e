package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// move is a promotion in the making.
type move struct {
	from, to registry.Environment
	release  registry.Release
	before   registry.Head // of the destination
	accepted []registry.Claim
	evidence []registry.Digest // of what was accepted, that is copied
	decision registry.Decision
}

func (m move) source() string      { return registry.Repository(m.from.Name, m.release.Model) }
func (m move) destination() string { return registry.Repository(m.to.Name, m.release.Model) }

func (m move) promotion() registry.Promotion {
	return registry.Promotion{
		Environment: m.to.Name, From: m.from.Name, Model: m.release.Model, Version: m.release.Tag(),
		Release: m.release.Digest, Previous: m.before.Release, Decision: m.decision,
	}
}

// Promote decides, copies, and moves the head, in the order that leaves nothing half
// done: what is copied without a head is invisible, and the head moves last, together
// with tags and history. Tags in another registry follow the head, and a promotion that
// broke off between the two is finished by the next.
func (s *Service) Promote(ctx context.Context, req registry.PromoteRequest) (registry.Promotion, error) {
	m, err := s.plan(ctx, req)
	if err != nil {
		return registry.Promotion{}, err
	}
	if !req.DryRun {
		if err := s.mend(ctx, m); err != nil {
			return m.promotion(), err
		}
	}
	if already, err := s.already(ctx, m); err != nil || already {
		p := m.promotion()
		p.Already = already
		return p, err
	}
	if err := s.judge(ctx, &m); err != nil || req.DryRun {
		return m.promotion(), err
	}
	return s.carryOut(ctx, m)
}

// mend restores what other registries lost or were never told: tags of the head, and
// evidence about the release in lists of referrers.
func (s *Service) mend(ctx context.Context, m move) error {
	if err := s.settle(ctx, m.to, m.release.Model); err != nil {
		return err
	}
	if err := s.relist(ctx, m.from, m.release); err != nil {
		return err
	}
	return s.relist(ctx, m.to, m.release)
}

// already reports whether the head is there, with the summary that allows it. A
// summary that was lost is made again by promoting again.
func (s *Service) already(ctx context.Context, m move) (bool, error) {
	if m.before.Release != m.release.Digest {
		return false, nil
	}
	claims, _, err := s.Claims(ctx, m.to.Name, m.release)
	if registry.HasCode(err, registry.CodeNotFound) {
		return false, nil
	}
	_, _, summarized := registry.FindVSA(claims, m.release, s.resource(m.to.Name, m.release.Model))
	return summarized, err
}

func (s *Service) plan(ctx context.Context, req registry.PromoteRequest) (move, error) {
	from, to, err := s.Config.Environments.Edge(req.From, req.To)
	if err != nil {
		return move{}, err
	}
	m := move{from: from, to: to}
	if m.release, err = s.Release(ctx, from.Name, req.Model, req.Reference); err != nil {
		return move{}, err
	}
	m.before, err = s.head(ctx, to.Name, req.Model)
	return m, err
}

// judge collects every reason against the promotion, so that all can be printed: bytes
// that changed, evidence that is gone, requirements that are unmet, a hold, a version
// that is taken.
func (s *Service) judge(ctx context.Context, m *move) error {
	reasons := []error{s.Content.Rehash(ctx, m.source(), m.release)}
	resource := s.resource(m.to.Name, m.release.Model)
	claims, ignored, err := s.claims(ctx, m.source(), resource, m.release)
	if err != nil {
		return errors.Join(append(reasons, err)...)
	}
	there, ignoredThere, err := s.claims(ctx, m.destination(), resource, m.release)
	if err != nil {
		return errors.Join(append(reasons, err)...)
	}
	m.weigh(claims, there)
	m.decision.Ignored = append(m.decision.Ignored, ignored...)
	reasons = append(reasons,
		unmet(m.to.Name, m.decision),
		s.missingEvidence(ctx, registry.HistoryQuery{Environment: m.from.Name}, m.release, claims, ignored),
		s.missingEvidence(ctx, registry.HistoryQuery{Environment: m.to.Name, Kind: registry.EventAttach}, m.release, there, ignoredThere),
		held(m.before),
		s.versionTaken(ctx, *m))
	return errors.Join(reasons...)
}

// weigh decides by the evidence of the source and by what came in at the destination
// since the release was promoted there before: a quarantine counts wherever it is.
// Only the source's is copied.
func (m *move) weigh(claims, there []registry.Claim) {
	here, _ := registry.Accept(m.release, claims)
	for _, c := range here {
		m.evidence = append(m.evidence, c.Bundle)
	}
	all := slices.Clone(claims)
	for _, c := range there {
		if !slices.ContainsFunc(claims, func(same registry.Claim) bool { return same.Bundle == c.Bundle }) {
			all = append(all, c)
		}
	}
	m.decision = m.to.Policy().Check(m.release, all)
	m.accepted, _ = registry.Accept(m.release, all)
}

func unmet(environment string, d registry.Decision) error {
	if d.Allowed() {
		return nil
	}
	var lines []string
	for _, r := range d.Unmet() {
		lines = append(lines, fmt.Sprintf("%s of %s: %s", r.Name, r.Subject, r.Detail))
	}
	if len(lines) == 0 {
		lines = append(lines, "its policy asks for nothing, and so allows nothing")
	}
	return registry.Errorf(registry.CodePolicy, "%s does not take this release:\n  %s", environment, strings.Join(lines, "\n  "))
}

func held(head registry.Head) error {
	if head.Hold == "" {
		return nil
	}
	return registry.WithHint(
		registry.Errorf(registry.CodePolicy, "%s in %s is held at %s since a rollback: %s", head.Model, head.Environment, head.Version, head.Hold),
		"when the cause is mended: mlpromote hold release %s --env %s --reason TEXT", head.Model, head.Environment)
}

// versionTaken refuses a version whose tag names another release in the destination.
func (s *Service) versionTaken(ctx context.Context, m move) error {
	if m.to.External() {
		return s.tagsTaken(ctx, m)
	}
	there, err := s.Content.Release(ctx, m.destination(), m.release.Tag())
	if registry.HasCode(err, registry.CodeNotFound) {
		return nil
	}
	if err == nil && there.Digest != m.release.Digest {
		return m.taken(there.Digest)
	}
	return err
}

// taken says that the version is there with another digest.
func (m move) taken(other registry.Digest) error {
	return registry.Errorf(registry.CodePolicy, "version %s of %s exists in %s with another digest (%s): choose a new version",
		m.release.Tag(), m.release.Model, m.to.Name, other)
}

// missingEvidence names evidence that history says was attached and that nobody has:
// without it the policy might have decided otherwise.
func (s *Service) missingEvidence(ctx context.Context, q registry.HistoryQuery, r registry.Release, claims []registry.Claim, ignored []registry.Ignored) error {
	present := make(map[registry.Digest]bool)
	for _, c := range claims {
		present[c.Bundle] = true
	}
	for _, i := range ignored {
		present[i.Bundle] = true
	}
	q.Model = r.Model
	events, err := s.History(ctx, q)
	if err != nil {
		return err
	}
	var gone []error
	for _, e := range events {
		if !concerns(e, r) {
			continue
		}
		for _, d := range e.Evidence {
			if !present[d] {
				gone = append(gone, registry.Errorf(registry.CodePolicy,
					"evidence %s (%s about %s) was recorded in history on %s and is gone from %s: restore it from a backup",
					d, e.PredicateType, e.Subject, e.Time.Format("2006-01-02 15:04:05Z"), e.Environment))
			}
		}
	}
	return errors.Join(gone...)
}

func concerns(e registry.Event, r registry.Release) bool {
	if e.Kind == registry.EventAttach {
		_, isEngine := r.Engine(e.Subject)
		return isEngine || e.Subject == r.Digest
	}
	return e.Kind == registry.EventPromote && e.Release == r.Digest
}

func (s *Service) carryOut(ctx context.Context, m move) (registry.Promotion, error) {
	p := m.promotion()
	intent := registry.Intent{Environment: m.to.Name, Model: m.release.Model, From: m.from.Name, Release: m.release.Digest, Begun: s.Now()}
	if err := s.Intents.Begin(ctx, intent); err != nil {
		return p, err
	}
	if err := s.Content.Copy(ctx, m.source(), m.destination(), m.release, m.evidence); err != nil {
		return p, err
	}
	vsa, err := s.summarize(ctx, m)
	if err != nil {
		return p, err
	}
	p.VSA = vsa
	return p, s.move(ctx, m.to, registry.Change{
		Event: registry.Event{Time: s.Now(), Kind: registry.EventPromote, Environment: m.to.Name, Model: m.release.Model,
			Version: m.release.Tag(), Release: m.release.Digest, Previous: m.before.Release, Evidence: slices.Concat(m.evidence, vsa)},
		Move:      &registry.HeadMove{Expect: m.before.Release},
		Tags:      tagMoves(m.destination(), m.release, true),
		EndIntent: true,
	})
}
