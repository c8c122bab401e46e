package promotion

import (
	"context"
	"errors"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/service/audit"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/heads"
)

// mayStay returns the objections to a release that is already the head.
func mayStay(m move) error {
	err := heads.CheckDecision(m.to.Name, m.decision)
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

// missingEvidence returns an error for evidence that the history names but that no longer
// exists. With it, the policy might decide otherwise. It ignores events after the basis, since
// that evidence may be newer than what was read.
func missingEvidence(
	ctx context.Context, s *backend.Backend,
	m move,
	q history.HistoryQuery,
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
		if !audit.Concerns(e, r) {
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
