package promotion

import (
	"context"
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/service/attachment"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/heads"
	"mlpromote.dev/mlpromote/registry/service/lookup"
	"mlpromote.dev/mlpromote/registry/storage"
)

// carryOut applies the decision. It skips what an earlier round did.
func carryOut(ctx context.Context, s *backend.Backend, m *move) error {
	if err := s.Intents.Begin(ctx, m.intent()); err != nil {
		return err
	}
	if err := copyContent(ctx, s, m); err != nil {
		return err
	}
	if err := summarize(ctx, s, m); err != nil {
		return err
	}
	if err := lookup.SameNodeTypes(ctx, s, m.basis); err != nil {
		return err
	}
	policy, err := backend.PolicyDigest(m.to)
	if err != nil {
		return err
	}
	keeps, err := attachment.KeepFrom(ctx, s, m.source(), m.to.Name, m.release.Model, m.unkept...)
	if err != nil {
		return err
	}
	return heads.Move(ctx, s, m.to, storage.Change{
		Event: history.Event{Time: s.Now(), Kind: history.EventPromote, Environment: m.to.Name, Model: m.release.Model,
			Version: m.release.Tag(), Release: m.release.Digest, Previous: m.basis.Head.Release,
			Evidence: slices.Concat(m.evidence, m.summary.bundles), Signer: m.summary.signer, Reason: m.why(), Skipped: m.skippedNames(),
			Policy: policy, Environments: s.Environments.Digest},
		DecisionBasis: &m.basis,
		Move:          &storage.HeadMove{},
		Keeps:         keeps,
		Tags:          heads.TagMoves(m.destination(), m.release, true),
		Needs: backend.Needs(
			m.to,
			m.release.Model,
			slices.Concat([]registry.Digest{m.release.Digest}, m.evidence, m.summary.bundles)...),
		EndIntent: true,
	})
}

// copyContent copies the release and its evidence to the destination.
func copyContent(ctx context.Context, s *backend.Backend, m *move) error {
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
func finish(ctx context.Context, s *backend.Backend, m move) error {
	if !m.already {
		return nil
	}
	if err := backend.Confirm(ctx, s, m.basis); err != nil || m.copied == nil {
		return err
	}
	return abandon(ctx, s, m)
}

// withdraw ends a promotion that is refused after an earlier round signed its summary. The
// summary allows the release, although no head names it. So withdraw also attaches the evidence
// against it in the destination, where readers of the summary find it.
func withdraw(ctx context.Context, s *backend.Backend, m move, refusal error) error {
	if m.copied == nil || !registry.HasCode(refusal, registry.CodePolicy) {
		return refusal
	}
	if len(m.summary.bundles) > 0 && !m.decision.Allowed() {
		refusal = registry.WithHint(
			errors.Join(refusal, copyContent(ctx, s, &m)),
			"a summary that allows it was already attached in %s (%s); the head did not move, and the evidence against the "+
				"release was attached there too",
			m.to.Name,
			m.summary.bundles[0],
		)
	}
	return errors.Join(refusal, abandon(ctx, s, m))
}

// nameSummary records a summary in the history that does not move a head.
func nameSummary(ctx context.Context, s *backend.Backend, m move) error {
	if len(m.summary.bundles) == 0 {
		return nil
	}
	return attachment.Record(ctx, s, m.to, nil, history.Event{
		Time: s.Now(), Kind: history.EventAttach, Environment: m.to.Name, Model: m.release.Model, Version: m.release.Tag(),
		Release: m.release.Digest, Subject: m.release.Digest, PredicateType: evidence.PredicateVSA,
		Evidence: m.summary.bundles, Signer: m.summary.signer,
	})
}

// abandon ends the intent of this promotion, which was not applied. If tags are mirrored, it
// keeps an intent for the current head, whose mirror may not be written yet.
func abandon(ctx context.Context, s *backend.Backend, m move) error {
	if err := nameSummary(ctx, s, m); err != nil {
		return err
	}
	if m.to.External() {
		return heads.Forget(ctx, s, m.to, m.intent())
	}
	return s.Intents.End(ctx, m.to.Name, m.release.Model, m.release.Digest)
}
