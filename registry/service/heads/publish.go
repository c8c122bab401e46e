package heads

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/lookup"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Publish moves the first environment's head to a release that was built there. If the head is
// already there, Publish changes nothing, but writes the tags of an interrupted publication.
func Publish(ctx context.Context, s *backend.Backend, p api.Publication) (history.Head, error) {
	if p.Release == "" { // for example an unset variable in CI; it would select the head
		return history.Head{}, registry.Errorf(registry.CodeInvalid,
			"publish %s: the release is empty: want its digest", p.Model)
	}
	environment := s.Environments.First()
	r, err := lookup.Release(ctx, s, environment.Name, p.Model, string(p.Release))
	if err != nil {
		return history.Head{}, err
	}
	if err := r.CheckWhole(); err != nil {
		return history.Head{}, err
	}
	var head history.Head
	err = backend.Decide(func() (err error) {
		head, err = publish(ctx, s, environment, r)
		return err
	})
	return head, GiveUp(ctx, s, environment, publication(environment, r), err)
}

// publication returns the intent of a publication.
func publication(e policy.Environment, r artifact.Release) history.Intent {
	return history.Intent{Environment: e.Name, Model: r.Model, Release: r.Digest}
}

// publish moves the head from wherever it is.
func publish(ctx context.Context, s *backend.Backend, e policy.Environment, r artifact.Release) (history.Head, error) {
	basis, err := backend.Basis(ctx, s, e.Name, r)
	if err != nil {
		return history.Head{}, err
	}
	if basis.Head.Release == r.Digest {
		return basis.Head, Settle(ctx, s, e, r.Model)
	}
	now := s.Now().UTC().Truncate(time.Microsecond)
	if err := Announce(ctx, s, e, publication(e, r)); err != nil {
		return history.Head{}, err
	}
	err = Move(ctx, s, e, storage.Change{
		Event: history.Event{Time: now, Kind: history.EventPublish, Environment: e.Name, Model: r.Model,
			Version: r.Tag(), Release: r.Digest, Previous: basis.Head.Release},
		DecisionBasis: &basis,
		Move:          &storage.HeadMove{},
		Tags:          TagMoves(registry.Repository(e.Name, r.Model), r, false),
		Needs:         backend.Needs(e, r.Model, r.Digest),
	})
	return history.Head{Environment: e.Name, Model: r.Model, Release: r.Digest, Version: r.Tag(), Since: now}, err
}

// TagMoves returns moves of every tag of the release. The mirror of the head may always move.
func TagMoves(repository string, r artifact.Release, immutable bool) []storage.TagMove {
	var moves []storage.TagMove
	for tag, d := range r.Tags() {
		moves = append(moves,
			storage.TagMove{Repository: repository, Tag: tag, Digest: d, Immutable: immutable && tag != artifact.HeadTag})
	}
	return moves
}
