package service

import (
	"context"
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

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
	if err := s.sameNodeTypes(ctx, m.basis); err != nil {
		return err
	}
	policy, err := rules(m.to)
	if err != nil {
		return err
	}
	keeps, err := s.keepFrom(ctx, m.source(), m.to.Name, m.release.Model, m.unkept...)
	if err != nil {
		return err
	}
	return s.move(ctx, m.to, storage.Change{
		Event: history.Event{Time: s.Now(), Kind: history.EventPromote, Environment: m.to.Name, Model: m.release.Model,
			Version: m.release.Tag(), Release: m.release.Digest, Previous: m.basis.Head.Release,
			Evidence: slices.Concat(m.evidence, m.summary.bundles), Signer: m.summary.signer, Reason: m.why(), Skipped: m.skippedNames(),
			Policy: policy, Environments: s.Config.Environments.Digest},
		DecisionBasis: &m.basis,
		Move:          &storage.HeadMove{},
		Keeps:         keeps,
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
	return s.record(ctx, m.to, nil, history.Event{
		Time: s.Now(), Kind: history.EventAttach, Environment: m.to.Name, Model: m.release.Model, Version: m.release.Tag(),
		Release: m.release.Digest, Subject: m.release.Digest, PredicateType: evidence.PredicateVSA,
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
