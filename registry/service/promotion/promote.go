// Package promotion moves a release from one environment to the next: it decides by the policy, copies, signs a summary and
// moves the head, in an order that leaves no partial state after a crash.
package promotion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/attachment"
	"mlpromote.dev/mlpromote/registry/service/audit"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/documents"
	"mlpromote.dev/mlpromote/registry/service/heads"
	"mlpromote.dev/mlpromote/registry/service/lookup"
)

// Promote decides, copies, and moves the head, in an order that leaves no partial state.
// Content that was copied without a head has no effect. The head moves last, in one transaction
// with tags and history, and only if the state that the decision rests on is unchanged.
// Otherwise Promote decides again and copies only what is new. Tags in another registry are
// written after the head moved; if that fails, the next promotion finishes it.
func Promote(ctx context.Context, s *backend.Backend, req api.PromoteRequest) (api.Promotion, error) {
	m, err := plan(ctx, s, req)
	if err != nil {
		return api.Promotion{}, err
	}
	if !req.DryRun {
		if err := mend(ctx, s, m); err != nil {
			return m.promotion(), err
		}
	}
	err = backend.Decide(func() error {
		if err := decide(ctx, s, &m); err != nil {
			return withdraw(ctx, s, m, err)
		}
		if m.already || req.DryRun {
			return finish(ctx, s, m)
		}
		return carryOut(ctx, s, &m)
	})
	if history.BasisOutdated(err) {
		err = errors.Join(err, abandon(ctx, s, m))
	}
	p := m.promotion()
	tellNodes(ctx, s, m, &p)
	return p, err
}

// mend restores what other registries lost or never got: tags of the head, and evidence about
// the release in lists of referrers.
func mend(ctx context.Context, s *backend.Backend, m move) error {
	if err := heads.Settle(ctx, s, m.to, m.release.Model); err != nil {
		return err
	}
	if err := audit.RelistRelease(ctx, s, m.from, m.release); err != nil {
		return err
	}
	return audit.RelistRelease(ctx, s, m.to, m.release)
}

func plan(ctx context.Context, s *backend.Backend, req api.PromoteRequest) (move, error) {
	from, to, err := s.Environments.Edge(req.From, req.To)
	if err == nil {
		err = registry.ValidateText("promotion: the reason", req.Reason)
	}
	if err != nil {
		return move{}, err
	}
	m := move{from: from, to: to, dryRun: req.DryRun, breaks: req.BreakGlass, lowers: req.Downgrade, seen: req.Replaces, reason: req.Reason}
	if m.release, err = lookup.Release(ctx, s, from.Name, req.Model, req.Ref); err == nil {
		err = m.release.CheckWhole()
	}
	return m, err
}

// decide decides on the current basis and evidence. It collects every reason against the
// promotion, so that all can be printed: changed bytes, missing evidence, unmet requirements, a
// hold, a version that is taken. If the head is already at the release, with a summary that
// allows it, mayStay checks whether it may stay. A lost summary is created again.
func decide(ctx context.Context, s *backend.Backend, m *move) error {
	var err error
	if m.basis, err = backend.Basis(ctx, s, m.to.Name, m.release); err != nil {
		return err
	}
	if m.basis.Head.Release != m.release.Digest {
		if err := heads.CheckSeen(m.seen, m.to.Name, m.release.Model, m.basis.Head); err != nil {
			return err
		}
	}
	restrictions, err := documents.RestrictionsIn(ctx, s, m.to.Name)
	if err != nil {
		return err
	}
	resource := s.Resource(m.to.Name, m.release.Model)
	here, err := lookup.Evidence(ctx, s, m.source(), resource, m.release)
	if err != nil {
		return errors.Join(rehash(ctx, s, m), err)
	}
	there, err := lookup.Evidence(ctx, s, m.destination(), resource, m.release)
	if err != nil {
		return errors.Join(rehash(ctx, s, m), err)
	}
	all := lookup.Union(here.Claims, there.Claims)
	m.standing = func(e artifact.Engine) []policy.Requirement {
		return policy.CheckEngineAfterPromotion(resource, m.release, e, all, restrictions)
	}
	_, _, summarized := policy.FindVSA(there.Claims, m.release, resource)
	if m.already = summarized && m.basis.Head.Release == m.release.Digest; m.already {
		if again, err := bring(ctx, s, m, here); again || err != nil {
			return errors.Join(err, decide(ctx, s, m))
		}
		m.decision = policy.CheckStanding(resource, m.release, all, restrictions)
		m.decision.IgnoreAll(here.Ignored)
		return mayStay(*m)
	}
	comparison, err := replacing(ctx, s, *m, all)
	if err != nil {
		return errors.Join(rehash(ctx, s, m), err)
	}
	policy := m.to.Policy()
	if policy.Promotion, err = promotionContext(ctx, s, *m); err != nil {
		return errors.Join(rehash(ctx, s, m), err)
	}
	policy.Promotion.Comparison, policy.Promotion.Restrictions = comparison, restrictions
	if policy.NeedsNodeTypes(m.release) {
		if policy.Promotion.NodeTypes, m.basis.OnNodeTypes, err = lookup.KnownNodeTypes(ctx, s); err != nil {
			return errors.Join(rehash(ctx, s, m), err)
		}
	}
	m.weigh(policy, here, all)
	m.basis.From, m.basis.Until = policy.Promotion.Now, m.decision.Until
	m.decision.IgnoreAll(here.Ignored)
	return errors.Join(
		rehash(ctx, s, m),
		heads.CheckDecision(m.to.Name, m.decision),
		missingEvidence(ctx, s, *m, history.HistoryQuery{Environment: m.from.Name}, here.Present),
		missingEvidence(ctx, s, *m, history.HistoryQuery{Environment: m.to.Name, Kind: history.EventAttach}, there.Present),
		audit.CheckExplained(ctx, s, m.to, m.release.Digest, m.basis.ModelState, here.Claims, there.Claims),
		heads.CheckHold(m.basis.Head),
		heads.CheckVersion(ctx, s, m.to, m.release))
}

// promotionContext is what the policy has to know of the promotion, but for the comparison.
func promotionContext(ctx context.Context, s *backend.Backend, m move) (policy.PromotionContext, error) {
	newest, err := s.NewestEvent(ctx)
	c := policy.PromotionContext{
		Environment: m.to.Name, Head: m.basis.Head.Release, Resource: s.Resource(m.to.Name, m.release.Model),
		Now: s.Now(), Newest: newest.Time, BreakGlass: m.breaks,
		HeadVersion: m.basis.Head.Version, Downgrade: m.lowers,
	}
	if err == nil {
		c.Publishers, err = lookup.Publishers(ctx, s, m.to, m.release)
	}
	if err == nil {
		c.Left, err = leftBy(ctx, s, m.to.Name, m.release)
	}
	for _, kind := range []history.EventKind{history.EventPromote, history.EventRollback} {
		if err != nil || !m.breaks {
			break
		}
		var events []history.Event
		events, err = s.History(ctx, history.HistoryQuery{
			Environment: m.to.Name, Model: m.release.Model, Kind: kind, Descending: true, Limit: 1})
		for _, e := range events {
			c.HeadMoved = max(c.HeadMoved, e.Seq)
		}
	}
	return c, err
}

// leftBy returns the number of the newest rollback that took an environment from a release to another; 0 if there is none.
func leftBy(ctx context.Context, s *backend.Backend, environment string, r artifact.Release) (int64, error) {
	q := history.HistoryQuery{Environment: environment, Model: r.Model, Kind: history.EventRollback, Descending: true}
	for e, err := range s.Catalog.History(ctx, q) {
		if err != nil {
			return 0, err
		}
		if e.Previous == r.Digest && e.Release != r.Digest {
			return e.Seq, nil
		}
	}
	return 0, nil
}

// rehash reads every byte of the release once.
func rehash(ctx context.Context, s *backend.Backend, m *move) error {
	if m.rehashed {
		return nil
	}
	err := s.Content.Rehash(ctx, m.source(), m.release)
	if err == nil && (m.from.External() || m.to.External()) {
		err = inspect(ctx, s, *m)
	}
	m.rehashed = err == nil
	return err
}

// inspect looks at engines that come from another registry or go to one. Those that were pushed here were looked at then,
// but who reads the other registry has nothing else to rest on.
func inspect(ctx context.Context, s *backend.Backend, m move) error {
	if s.Inspect == nil {
		return registry.Errorf(registry.CodeUnavailable, "the files of engines of %s cannot be inspected here", m.from.Name)
	}
	return s.Inspect(ctx, policy.Located{Repository: m.source(), Release: m.release})
}

// bring attaches evidence of the source to a release that is already the head: evidence that
// did not come through the service, or that came while the destination was unreachable. It runs
// once, and reports whether anything changed.
func bring(ctx context.Context, s *backend.Backend, m *move, here lookup.ReleaseEvidence) (bool, error) {
	if m.dryRun || m.brought {
		return false, nil
	}
	m.brought = true
	events, err := s.History(ctx, history.HistoryQuery{Environment: m.to.Name, Model: m.release.Model})
	if err != nil {
		return false, err
	}
	there := audit.Recorded(events, m.release)
	counted, _ := evidence.Accept(m.release, here.Listed())
	fresh := slices.DeleteFunc(counted, func(c evidence.Claim) bool {
		return slices.Contains(there, c.Bundle) || !evidence.Spreads(c.Statement.PredicateType) ||
			!attachment.MayReach(ctx, m.to, m.release.Model, c)
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
		keeps, err := attachment.KeepFrom(ctx, s, m.source(), m.to.Name, m.release.Model, c)
		if err != nil {
			return true, err
		}
		err = attachment.Record(ctx, s, m.to, keeps, history.Event{
			Time: s.Now(), Kind: history.EventAttach, Environment: m.to.Name, Model: m.release.Model, Version: m.release.Tag(),
			Release: m.release.Digest, Subject: c.Subject, PredicateType: c.Statement.PredicateType,
			Evidence: []registry.Digest{c.Bundle}, Signer: c.Signer, Reason: c.Reason(),
		})
		if err != nil {
			return true, err
		}
	}
	return true, abandon(ctx, s, *m)
}

// replacing compares the release with the one that it would replace, if a requirement asks for it. claims
// are about the release.
func replacing(ctx context.Context, s *backend.Backend, m move, claims []evidence.Claim) (*policy.Comparison, error) {
	head := m.basis.Head.Release
	if !m.to.Policy().Compares() || head == "" || head == m.release.Digest || s.Compare == nil {
		return nil, nil
	}
	was, err := s.Content.Release(ctx, m.destination(), string(head))
	if err != nil {
		return nil, err
	}
	next := policy.Located{Repository: m.source(), Release: m.release}
	found, err := s.Compare(ctx, next, policy.Located{Repository: m.destination(), Release: was})
	if err != nil {
		return nil, err
	}
	before, err := lookup.Evidence(ctx, s, m.destination(), s.Resource(m.to.Name, was.Model), was)
	found.Version = was.Tag()
	found.CountCases(policy.CasesShown(m.release, claims), policy.CasesShown(was, before.Claims))
	return &found, err
}

// tellNodes adds to a promotion which engine each node type would get. It never fails, since no decision rests on it.
func tellNodes(ctx context.Context, s *backend.Backend, m move, p *api.Promotion) {
	if m.standing == nil {
		return
	}
	all, err := lookup.NodeTypes(ctx, s)
	if err != nil {
		p.Warnings = append(p.Warnings, fmt.Sprintf("the node types cannot be read, so what they get is unknown: %v", err))
		return
	}
	if len(all) > 0 {
		p.NodesGet = policy.NodesGet(m.release, all, m.standing)
	}
}
