package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// move is a promotion in progress.
type move struct {
	from, to registry.Environment
	release  registry.Release
	dryRun   bool
	breaks   bool // unmet requirements are skipped where approvers agreed to that

	// The decision, which may be repeated.
	basis    registry.DecisionBasis // of the destination
	accepted []registry.Claim
	evidence []registry.Digest // accepted evidence, to be copied
	decision registry.Decision
	already  bool // the head is already at the release

	// Completed work, which is not repeated.
	rehashed bool
	brought  bool              // evidence that was added after an earlier promotion of the release
	copied   []registry.Digest // evidence in the destination; nil: nothing was copied yet
	summary  summary
}

func (m move) source() string      { return registry.Repository(m.from.Name, m.release.Model) }
func (m move) destination() string { return registry.Repository(m.to.Name, m.release.Model) }

// skipped describes what the promotion skips, or is "".
func (m move) skipped() string {
	if m.decision.Skipped == nil {
		return ""
	}
	return m.decision.Skipped.String()
}

func (m move) intent() registry.Intent {
	return registry.Intent{Environment: m.to.Name, Model: m.release.Model, From: m.from.Name, Release: m.release.Digest}
}

func (m move) promotion() registry.Promotion {
	p := registry.Promotion{
		Environment: m.to.Name, From: m.from.Name, Model: m.release.Model, Version: m.release.Tag(),
		Release: m.release.Digest, Previous: m.basis.Head.Release, Decision: m.decision, Unchanged: m.already, Hold: m.basis.Head.Hold,
	}
	if !m.already {
		p.VSA = m.summary.bundles
	}
	return p
}

// Promote decides, copies, and moves the head, in an order that leaves no partial state.
// Content that was copied without a head has no effect. The head moves last, in one transaction
// with tags and history, and only if the state that the decision rests on is unchanged.
// Otherwise Promote decides again and copies only what is new. Tags in another registry are
// written after the head moved; if that fails, the next promotion finishes it.
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
		if err := s.decide(ctx, &m); err != nil {
			return s.withdraw(ctx, m, err)
		}
		if m.already || req.DryRun {
			return s.finish(ctx, m)
		}
		return s.carryOut(ctx, &m)
	})
	if registry.BasisOutdated(err) {
		err = errors.Join(err, s.abandon(ctx, m))
	}
	return m.promotion(), err
}

// mend restores what other registries lost or never got: tags of the head, and evidence about
// the release in lists of referrers.
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
	m := move{from: from, to: to, dryRun: req.DryRun, breaks: req.BreakGlass}
	m.release, err = s.Release(ctx, from.Name, req.Model, req.Ref)
	return m, err
}

// decide decides on the current basis and evidence. It collects every reason against the
// promotion, so that all can be printed: changed bytes, missing evidence, unmet requirements, a
// hold, a version that is taken. If the head is already at the release, with a summary that
// allows it, judge checks whether it may stay. A lost summary is created again.
func (s *Service) decide(ctx context.Context, m *move) error {
	var err error
	if m.basis, err = s.basis(ctx, m.to.Name, m.release); err != nil {
		return err
	}
	restrictions, err := s.restrictions(ctx, m.to.Name)
	if err != nil {
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
	if m.already = summarized && m.basis.Head.Release == m.release.Digest; m.already {
		if again, err := s.bring(ctx, m, here.claims); again || err != nil {
			return errors.Join(err, s.decide(ctx, m))
		}
		m.decision = registry.CheckStanding(resource, m.release, all, restrictions)
		m.decision.IgnoreAll(here.ignored)
		return mayStay(*m)
	}
	comparison, err := s.replacing(ctx, *m, all)
	if err != nil {
		return errors.Join(s.rehash(ctx, m), err)
	}
	policy := m.to.Policy()
	if policy.Promotion, err = s.context(ctx, *m); err != nil {
		return errors.Join(s.rehash(ctx, m), err)
	}
	policy.Promotion.Comparison, policy.Promotion.Restrictions = comparison, restrictions
	m.weigh(policy, here.claims, all)
	m.basis.From, m.basis.Until = policy.Promotion.Now, m.decision.Until
	m.decision.IgnoreAll(here.ignored)
	return errors.Join(
		s.rehash(ctx, m),
		unmet(m.to.Name, m.decision),
		s.missingEvidence(ctx, *m, registry.HistoryQuery{Environment: m.from.Name}, here.present),
		s.missingEvidence(ctx, *m, registry.HistoryQuery{Environment: m.to.Name, Kind: registry.EventAttach}, there.present),
		s.unexplained(ctx, *m, here.claims, there.claims),
		held(m.basis.Head),
		s.versionTaken(ctx, *m))
}

// context is what the policy has to know of the promotion, but for the comparison.
func (s *Service) context(ctx context.Context, m move) (registry.PromotionContext, error) {
	newest, err := s.newestEvent(ctx)
	c := registry.PromotionContext{
		Environment: m.to.Name, Head: m.basis.Head.Release, Resource: s.resource(m.to.Name, m.release.Model),
		Now: s.Now(), Newest: newest.Time, BreakGlass: m.breaks,
	}
	for _, kind := range []registry.EventKind{registry.EventPromote, registry.EventRollback} {
		if err != nil || !m.breaks {
			break
		}
		var events []registry.Event
		events, err = s.History(ctx, registry.HistoryQuery{
			Environment: m.to.Name, Model: m.release.Model, Kind: kind, Descending: true, Limit: 1})
		for _, e := range events {
			c.HeadMoved = max(c.HeadMoved, e.Seq)
		}
	}
	return c, err
}

// rehash reads every byte of the release once.
func (s *Service) rehash(ctx context.Context, m *move) error {
	if m.rehashed {
		return nil
	}
	err := s.Content.Rehash(ctx, m.source(), m.release)
	m.rehashed = err == nil
	return err
}

// bring attaches evidence of the source to a release that is already the head: evidence that
// did not come through the service, or that came while the destination was unreachable. It runs
// once, and reports whether anything changed.
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
		if m.to.External() {
			return false, nil
		}
		// End the intent of an earlier call that stopped after its last event.
		return false, s.Intents.End(ctx, m.to.Name, m.release.Model, m.release.Digest)
	}
	var bundles []registry.Digest
	for _, c := range fresh {
		bundles = append(bundles, c.Bundle)
	}
	// Until the events are written, the intent explains the copies.
	if err := s.Intents.Begin(ctx, m.intent()); err != nil {
		return false, err
	}
	if err := s.Content.Copy(ctx, m.source(), m.destination(), m.release, bundles); err != nil {
		return false, err
	}
	for _, c := range fresh {
		err := s.record(ctx, m.to, registry.Event{
			Time: s.Now(), Kind: registry.EventAttach, Environment: m.to.Name, Model: m.release.Model, Version: m.release.Tag(),
			Release: m.release.Digest, Subject: c.Subject, PredicateType: c.Statement.PredicateType,
			Evidence: []registry.Digest{c.Bundle}, Signer: c.Signer, Reason: c.Reason(),
		})
		if err != nil {
			return true, err
		}
	}
	return true, s.abandon(ctx, *m)
}

// mayStay returns the objections to a release that is already the head.
func mayStay(m move) error {
	err := unmet(m.to.Name, m.decision)
	if err == nil {
		return nil
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeOf(err), "%s is already at %s of %s, but would no longer accept it: %w",
			m.to.Name, m.release.Tag(), m.release.Model, err),
		"mlpromote rollback %s --env %s --reason TEXT goes back to the head before",
		m.release.Model,
		m.to.Name,
	)
}

// union adds to the source's evidence what was added at the destination since an earlier
// promotion of the release. A quarantine counts wherever it is.
func union(here, there []registry.Claim) []registry.Claim {
	all := slices.Clone(here)
	for _, c := range there {
		if !slices.ContainsFunc(here, func(same registry.Claim) bool { return same.Bundle == c.Bundle }) {
			all = append(all, c)
		}
	}
	return all
}

// replacing compares the release with the one that it would replace, if a requirement asks for it. claims
// are about the release.
func (s *Service) replacing(ctx context.Context, m move, claims []registry.Claim) (*registry.Comparison, error) {
	head := m.basis.Head.Release
	if !m.to.Policy().Compares() || head == "" || head == m.release.Digest || s.Compare == nil {
		return nil, nil
	}
	was, err := s.Content.Release(ctx, m.destination(), string(head))
	if err != nil {
		return nil, err
	}
	found, err := s.Compare(ctx, registry.Located{Repository: m.source(), Release: m.release}, registry.Located{Repository: m.destination(), Release: was})
	if err != nil {
		return nil, err
	}
	before, err := s.evidence(ctx, m.destination(), s.resource(m.to.Name, was.Model), was)
	found.Version = was.Tag()
	found.CountCases(registry.CasesShown(m.release, claims), registry.CasesShown(was, before.claims))
	return &found, err
}

// weigh decides by the policy of the destination, with all evidence. Only evidence of the source is copied.
func (m *move) weigh(policy registry.Policy, here, all []registry.Claim) {
	counted, _ := registry.Accept(m.release, here)
	m.evidence = nil
	for _, c := range counted {
		m.evidence = append(m.evidence, c.Bundle)
	}
	m.decision = policy.Check(m.release, all)
	m.accepted, _ = registry.Accept(m.release, all)
}

func unmet(environment string, d registry.Decision) error {
	if d.Allowed() {
		return nil
	}
	var lines []string
	unmet := d.Unmet()
	for i, r := range unmet {
		says := func(other registry.Requirement) bool { return other.Subject == r.Subject && other.Detail == r.Detail }
		if slices.ContainsFunc(unmet[:i], says) {
			continue
		}
		line := fmt.Sprintf("%s of %s: %s", r.Name, r.Subject, registry.PlainText(r.Detail))
		for _, other := range unmet[i+1:] {
			if says(other) {
				line += " (so too " + other.Name + ")"
			}
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		lines = append(lines, "its policy has no requirements, so it allows no release")
	}
	return withoutFailing(d, registry.Errorf(registry.CodePolicy,
		"%s does not take this release:\n  %s", environment, strings.Join(lines, "\n  ")))
}

// withoutFailing adds to a refusal how to get a release of the engines that meet the policy, if reports
// about some of the others are all that is in the way.
func withoutFailing(d registry.Decision, refusal error) error {
	var failing, fine []string
	for _, r := range d.Unmet() {
		if r.Name != registry.RequireParity && r.Name != registry.RequireRecordedCases || len(r.Evidence) == 0 {
			return refusal
		}
		failing = append(failing, r.Subject)
	}
	for _, r := range d.Requirements {
		if r.Name == registry.RequireParity && !slices.Contains(failing, r.Subject) {
			fine = append(fine, r.Subject)
		}
	}
	if len(failing) == 0 || len(fine) == 0 {
		return refusal
	}
	slices.Sort(failing)
	return registry.WithHint(refusal, "%s could be promoted alone: remove the variant or target of %s from the spec, then build and verify; build --keep-going leaves out only what cannot be built",
		registry.Count(len(fine), "engine"), strings.Join(slices.Compact(failing), ", "))
}

func held(head registry.Head) error {
	if head.Hold == "" {
		return nil
	}
	return registry.WithHint(
		registry.Errorf(registry.CodePolicy, "%s in %s is held at %s: %s", head.Model, head.Environment, head.Version,
			registry.PlainText(head.Hold)),
		"when the cause is fixed: mlpromote hold release %s --env %s --reason TEXT",
		head.Model,
		head.Environment,
	)
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

// taken returns the error that the version exists with another digest.
func (m move) taken(other registry.Digest) error {
	return registry.Errorf(registry.CodePolicy,
		"version %s of %s exists in %s with another digest (%s): choose a new version",
		m.release.Tag(), m.release.Model, m.to.Name, other)
}

// missingEvidence returns an error for evidence that the history names but that no longer
// exists. With it, the policy might decide otherwise. It ignores events after the basis, since
// that evidence may be newer than what was read.
func (s *Service) missingEvidence(
	ctx context.Context,
	m move,
	q registry.HistoryQuery,
	present map[registry.Digest]bool,
) error {
	r := m.release
	q.Model, q.Before = r.Model, m.basis.Seq+1
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
					"evidence %s (%s about %s) was recorded in history on %s, but is missing in %s: restore it from a backup",
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

// carryOut applies the decision. It skips what an earlier round did.
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
			Version: m.release.Tag(), Release: m.release.Digest, Previous: m.basis.Head.Release,
			Evidence: slices.Concat(m.evidence, m.summary.bundles), Reason: m.skipped()},
		DecisionBasis: &m.basis,
		Move:          &registry.HeadMove{},
		Tags:          tagMoves(m.destination(), m.release, true),
		Needs: needs(
			m.to,
			m.release.Model,
			slices.Concat([]registry.Digest{m.release.Digest}, m.evidence, m.summary.bundles)...),
		EndIntent: true,
	})
}

// copy copies the release and its evidence to the destination.
func (s *Service) copy(ctx context.Context, m *move) error {
	fresh := slices.DeleteFunc(slices.Clone(m.evidence),
		func(d registry.Digest) bool { return slices.Contains(m.copied, d) })
	if m.copied != nil && len(fresh) == 0 {
		return nil
	}
	if err := s.Content.Copy(ctx, m.source(), m.destination(), m.release, fresh); err != nil {
		return err
	}
	m.copied = append(append([]registry.Digest{}, m.copied...), fresh...)
	return nil
}

// finish ends a promotion that has nothing left to do. It checks that nothing has changed, and
// ends the intent of an earlier round.
func (s *Service) finish(ctx context.Context, m move) error {
	if !m.already {
		return nil
	}
	if err := s.confirm(ctx, m.basis); err != nil || m.copied == nil {
		return err
	}
	return s.abandon(ctx, m)
}

// withdraw ends a promotion that is refused after an earlier round signed its summary. The
// summary allows the release, although no head names it. So withdraw also attaches the evidence
// against it in the destination, where readers of the summary find it.
func (s *Service) withdraw(ctx context.Context, m move, refusal error) error {
	if m.copied == nil || !registry.HasCode(refusal, registry.CodePolicy) {
		return refusal
	}
	if len(m.summary.bundles) > 0 && !m.decision.Allowed() {
		refusal = registry.WithHint(
			errors.Join(refusal, s.copy(ctx, &m)),
			"a summary that allows it was already attached in %s (%s); the head did not move, and the evidence against the "+
				"release was attached there too",
			m.to.Name,
			m.summary.bundles[0],
		)
	}
	return errors.Join(refusal, s.abandon(ctx, m))
}

// nameSummary records a summary in the history that does not move a head.
func (s *Service) nameSummary(ctx context.Context, m move) error {
	if len(m.summary.bundles) == 0 {
		return nil
	}
	return s.record(ctx, m.to, registry.Event{
		Time: s.Now(), Kind: registry.EventAttach, Environment: m.to.Name, Model: m.release.Model, Version: m.release.Tag(),
		Release: m.release.Digest, Subject: m.release.Digest, PredicateType: registry.PredicateVSA,
		Evidence: m.summary.bundles, Signer: m.summary.signer,
	})
}

// abandon ends the intent of this promotion, which was not applied. If tags are mirrored, it
// keeps an intent for the current head, whose mirror may not be written yet.
func (s *Service) abandon(ctx context.Context, m move) error {
	if err := s.nameSummary(ctx, m); err != nil {
		return err
	}
	if m.to.External() {
		return s.forget(ctx, m.to, m.intent())
	}
	return s.Intents.End(ctx, m.to.Name, m.release.Model, m.release.Digest)
}
