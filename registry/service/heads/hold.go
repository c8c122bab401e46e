package heads

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// SetHold stops promotions from moving a head. A head that is already held gets the new reason;
// the history keeps both reasons.
func SetHold(ctx context.Context, s *backend.Backend, environment, model, reason string) error {
	e, err := s.Find(environment)
	if err != nil {
		return err
	}
	if !e.Protected() {
		return registry.Errorf(registry.CodeInvalid,
			"builds write to %s directly, so it cannot be held: name an environment with from", environment)
	}
	if err := backend.CheckReason("hold set", "refused promotions show it", reason); err != nil {
		return err
	}
	return backend.Decide(func() error {
		standing, err := s.Catalog.ModelState(ctx, environment, model)
		if err != nil {
			return err
		}
		if standing.Head.Release == "" {
			return registry.Errorf(registry.CodeNotFound, "%s has no head in %s", model, environment)
		}
		return setHold(ctx, s, standing, history.EventHoldSet, reason, reason)
	})
}

// ReleaseHold lets promotions move a held head again. It fails if another request replaced the
// hold meanwhile, or before it the one that the caller saw.
func ReleaseHold(ctx context.Context, s *backend.Backend, req api.HoldRelease) error {
	head, err := backend.ExistingHead(ctx, s, req.Environment, req.Model)
	if err != nil {
		return err
	}
	if head.Hold == "" {
		return registry.WithHint(registry.Errorf(registry.CodeNotFound, "nothing to release: %s in %s is not held", req.Model, req.Environment),
			"mlpromote list shows what is held")
	}
	if err := backend.CheckReason("hold release", "it stays in the history", req.Reason); err != nil {
		return err
	}
	if req.Seen != nil && *req.Seen != head.Hold {
		return registry.WithHint(
			registry.Errorf(registry.CodeConflict, "%s in %s is held for another reason than you saw: %s", req.Model, req.Environment, head.Hold),
			"look at the hold that is there now, and decide again")
	}
	return backend.Decide(func() error {
		standing, err := s.Catalog.ModelState(ctx, req.Environment, req.Model)
		if err != nil {
			return err
		}
		if standing.Head.Release != head.Release || standing.Head.Hold != head.Hold {
			return HeadChanged(head, standing.Head)
		}
		return setHold(ctx, s, standing, history.EventHoldRelease, "", req.Reason)
	})
}

// setHold sets or clears the hold of a head.
func setHold(
	ctx context.Context, s *backend.Backend,
	standing history.ModelState,
	kind history.EventKind,
	hold, reason string,
) error {
	head := standing.Head
	basis := history.DecisionBasis{ModelState: standing}
	err := s.Apply(ctx, storage.Change{
		Event: history.Event{Time: s.Now(), Kind: kind, Environment: standing.Environment, Model: standing.Model,
			Version: head.Version, Release: head.Release, Previous: head.Release, Reason: reason},
		DecisionBasis: &basis,
		Move:          &storage.HeadMove{Hold: hold},
	})
	return err
}
