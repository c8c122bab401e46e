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
	dryRun   bool

	// Of the decision, which may be made again.
	ground   registry.Ground // of the destination
	accepted []registry.Claim
	evidence []registry.Digest // of what was accepted, that is copied
	decision registry.Decision
	already  bool // the head is there

	// Of what was done, which is not done again.
	rehashed bool
	brought  bool              // evidence that came after an earlier promotion of the release
	copied   []registry.Digest // evidence that is in the destination; nil: nothing is
	summary  summary
}

func (m move) source() string      { return registry.Repository(m.from.Name, m.release.Model) }
func (m move) destination() string { return registry.Repository(m.to.Name, m.release.Model) }

func (m move) intent() registry.Intent {
	return registry.Intent{Environment: m.to.Name, Model: m.release.Model, From: m.from.Name, Release: m.release.Digest}
}

func (m move) promotion() registry.Promotion {
	p := registry.Promotion{
		Environment: m.to.Name, From: m.from.Name, Model: m.release.Model, Version: m.release.Tag(),
		Release: m.release.Digest, Previous: m.ground.Head.Release, Decision: m.decision, Already: m.already,
	}
	if !m.already {
		p.VSA = m.summary.bundles
	}
	return p
}

// Promote decides, copies, and moves the head, in the order that leaves nothing half
// done: what is copied without a head is invisible, and the head moves last, together
// with tags and history. The head moves only if nothing has changed that was decided on;
// else it is decided again, and only what is new is copied. Tags in another registry
// follow the head, and a promotion that broke off between the two is finished by the next.
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
	err = decided(func() error {
		if err := s.judge(ctx, &m); err != nil {
			return s.withdraw(ctx, m, err)
		}
		if m.already || req.DryRun {
			return s.finish(ctx, m)
		}
		return s.carryOut(ctx, &m)
	})
	if registry.GroundMoved(err) {
		err = errors.Join(err, s.abandon(ctx, m))
	}
	return m.promotion(), err
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

func (s *Service) plan(ctx context.Context, req registry.PromoteRequest) (move, error) {
	from, to, err := s.Config.Environments.Edge(req.From, req.To)
	if err != nil {
		return move{}, err
	}
	m := move{from: from, to: to, dryRun: req.DryRun}
	m.release, err = s.Release(ctx, from.Name, req.Model, req.Reference)
	return m, err
}

// judge decides by what the ground and the evidence are now. It collects every reason
// against the promotion, so that all can be printed: bytes that changed, evidence that is
// gone, requirements that are unmet, a hold, a version that is taken. Where the head is
// there already, with the summary that allows it, what counts is whether it may stay; a
// summary that was lost is made again.
func (s *Service) judge(ctx context.Context, m *move) error {
	var err error
	if m.ground, err = s.ground(ctx, m.to.Name, m.release); err != nil {
		return err
	}
	resource := s.resource(m.to.Name, m.release.Model)
	here, err := s.evidence(ctx, m.source(), resource, m.release)
	if err != nil {
		return errors.Join(s.rehash(ctx, m), err)
	}
	there, err := s.evidence(ctx, m.destination(), resource, m.release)
	if err != nil {
		return errors.Join(s.rehash(ctx, m), err)
	}
	all := union(here.claims, there.claims)
	_, _, summarized := registry.FindVSA(there.claims, m.release, resource)
	if m.already = summarized && m.ground.Head.Release == m.release.Digest; m.already {
		if again, err := s.bring(ctx, m, here.claims); again || err != nil {
			return errors.Join(err, s.judge(ctx, m))
		}
		m.decision = registry.CheckStanding(resource, m.release, all)
		m.decision.IgnoreAll(here.ignored)
		return mayStay(*m)
	}
	m.weigh(here.claims, all)
	m.decision.IgnoreAll(here.ignored)
	return errors.Join(
		s.rehash(ctx, m),
		unmet(m.to.Name, m.decision),
		s.missingEvidence(ctx, *m, registry.HistoryQuery{Environment: m.from.Name}, here.present),
		s.missingEvidence(ctx, *m, registry.HistoryQuery{Environment: m.to.Name, Kind: registry.EventAttach}, there.present),
		s.unexplained(ctx, *m, here.claims, there.claims),
		held(m.ground.Head),
		s.versionTaken(ctx, *m))
}

// rehash reads every byte of the release, once.
func (s *Service) rehash(ctx context.Context, m *move) error {
	if m.rehashed {
		return nil
	}
	err := s.Content.Rehash(ctx, m.source(), m.release)
	m.rehashed = err == nil
	return err
}

// bring attaches evidence of the source beside a release that is the head already: what came
// in past the service, or while the destination could not be reached. It is done once. It
// reports whether anything changed.
func (s *Service) bring(ctx context.Context, m *move, here []registry.Claim) (bool, error) {
	if m.dryRun || m.brought {
		return false, nil
	}
	m.brought = true
	events, err := s.History(ctx, registry.HistoryQuery{Environment: m.to.Name, Model: m.release.Model})
	if err != nil {
		return false, err
	}
	there := recorded(events, m.release)
	counted, _ := registry.Accept(m.release, here)
	fresh := slices.DeleteFunc(counted, func(c registry.Claim) bool {
		return slices.Contains(there, c.Bundle) || !registry.Spreads(c.Statement.PredicateType)
	})
	if len(fresh) == 0 {
		return false, nil
	}
	var bundles []registry.Digest
	for _, c := range fresh {
		bundles = append(bundles, c.Bundle)
	}
	if err := s.Content.Copy(ctx, m.source(), m.destination(), m.release, bundles); err != nil {
		return false, err
	}
	for _, c := range fresh {
		err := s.record(ctx, m.to, registry.Event{
			Time: s.Now(), Kind: registry.EventAttach, Environment: m.to.Name, Model: m.release.Model, Version: m.release.Tag(),
			Release: m.release.Digest, Subject: c.Subject, PredicateType: c.Statement.PredicateType, Evidence: []registry.Digest{c.Bundle}, Signer: c.Signer,
			Reason: c.Reason(),
		})
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// mayStay says what now speaks against a release that is the head.
func mayStay(m move) error {
	err := unmet(m.to.Name, m.decision)
	if err == nil {
		return nil
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeOf(err), "%s is at %s of %s already, and would not take it any more: %w", m.to.Name, m.release.Tag(), m.release.Model, err),
		"mlpromote rollback %s --env %s --reason TEXT goes back to the head before", m.release.Model, m.to.Name)
}

// union is the evidence of the source with what came in at the destination since the
// release was promoted there before: a quarantine counts wherever it is.
func union(here, there []registry.Claim) []registry.Claim {
	all := slices.Clone(here)
	for _, c := range there {
		if !slices.ContainsFunc(here, func(same registry.Claim) bool { return same.Bundle == c.Bundle }) {
			all = append(all, c)
		}
	}
	return all
}

// weigh decides by all the evidence. Only that of the source is copied.
func (m *move) weigh(here, all []registry.Claim) {
	counted, _ := registry.Accept(m.release, here)
	m.evidence = nil
	for _, c := range counted {
		m.evidence = append(m.evidence, c.Bundle)
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
		lines = append(lines, fmt.Sprintf("%s of %s: %s", r.Name, r.Subject, registry.PlainText(r.Detail)))
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
		registry.Errorf(registry.CodePolicy, "%s in %s is held at %s: %s", head.Model, head.Environment, head.Version, registry.PlainText(head.Hold)),
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
// without it the policy might have decided otherwise. What the history names since the ground
// was taken may have come after the evidence was read.
func (s *Service) missingEvidence(ctx context.Context, m move, q registry.HistoryQuery, present map[registry.Digest]bool) error {
	r := m.release
	q.Model, q.Before = r.Model, m.ground.Seq+1
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

// carryOut does what was decided. What an earlier round did is not done again.
func (s *Service) carryOut(ctx context.Context, m *move) error {
	if err := s.Intents.Begin(ctx, m.intent()); err != nil {
		return err
	}
	if err := s.copy(ctx, m); err != nil {
		return err
	}
	if err := s.summarize(ctx, m); err != nil {
		return err
	}
	return s.move(ctx, m.to, registry.Change{
		Event: registry.Event{Time: s.Now(), Kind: registry.EventPromote, Environment: m.to.Name, Model: m.release.Model,
			Version: m.release.Tag(), Release: m.release.Digest, Previous: m.ground.Head.Release, Evidence: slices.Concat(m.evidence, m.summary.bundles)},
		Ground:    &m.ground,
		Move:      &registry.HeadMove{},
		Tags:      tagMoves(m.destination(), m.release, true),
		Needs:     needs(m.to, m.release.Model, slices.Concat([]registry.Digest{m.release.Digest}, m.evidence, m.summary.bundles)...),
		EndIntent: true,
	})
}

// copy makes the release and its evidence present in the destination.
func (s *Service) copy(ctx context.Context, m *move) error {
	fresh := slices.DeleteFunc(slices.Clone(m.evidence), func(d registry.Digest) bool { return slices.Contains(m.copied, d) })
	if m.copied != nil && len(fresh) == 0 {
		return nil
	}
	if err := s.Content.Copy(ctx, m.source(), m.destination(), m.release, fresh); err != nil {
		return err
	}
	m.copied = append(append([]registry.Digest{}, m.copied...), fresh...)
	return nil
}

// finish ends a promotion that has nothing left to do: nothing may have changed, and the
// intent of a round before must not stay.
func (s *Service) finish(ctx context.Context, m move) error {
	if !m.already {
		return nil
	}
	if err := s.confirm(ctx, m.ground); err != nil || m.copied == nil {
		return err
	}
	return s.abandon(ctx, m)
}

// withdraw ends a promotion that is refused after a round before had signed its summary.
// That allows the release, which no head has chosen; what was found against it is put
// beside it, where everybody finds it who asks whether it counts.
func (s *Service) withdraw(ctx context.Context, m move, refusal error) error {
	if m.copied == nil || !registry.HasCode(refusal, registry.CodePolicy) {
		return refusal
	}
	if len(m.summary.bundles) > 0 && !m.decision.Allowed() {
		refusal = registry.WithHint(errors.Join(refusal, s.copy(ctx, &m)),
			"a summary that allows it was attached in %s before that (%s); the head did not move, and the evidence against it is there too", m.to.Name, m.summary.bundles[0])
	}
	return errors.Join(refusal, s.abandon(ctx, m))
}

// nameSummary lets the history name a summary that no head will be moved by.
func (s *Service) nameSummary(ctx context.Context, m move) error {
	if len(m.summary.bundles) == 0 {
		return nil
	}
	return s.record(ctx, m.to, registry.Event{
		Time: s.Now(), Kind: registry.EventAttach, Environment: m.to.Name, Model: m.release.Model, Version: m.release.Tag(),
		Release: m.release.Digest, Subject: m.release.Digest, PredicateType: registry.PredicateVSA, Evidence: m.summary.bundles, Signer: m.summary.signer,
	})
}

// abandon ends the intent of this promotion, which was not carried out. Where tags are
// mirrored, an intent for what is now the head says that its mirror may not be written yet.
func (s *Service) abandon(ctx context.Context, m move) error {
	if err := s.nameSummary(ctx, m); err != nil {
		return err
	}
	if m.to.External() {
		return s.forget(ctx, m.to, m.intent())
	}
	return s.Intents.End(ctx, m.to.Name, m.release.Model, m.release.Digest)
}
