package service

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// Publish moves the first environment's head to a release that was built there.
// Publishing what the head names already changes nothing, but finishes a publication that
// broke off before the tags were written.
func (s *Service) Publish(ctx context.Context, p registry.Publication) (registry.Head, error) {
	if p.Release == "" { // a variable of CI that is not set; the head would be found
		return registry.Head{}, registry.Errorf(registry.CodeInvalid, "publish %s: no release is named: want its digest", p.Model)
	}
	environment := s.Config.Environments.First()
	first := environment.Name
	r, err := s.Release(ctx, first, p.Model, string(p.Release))
	if err != nil {
		return registry.Head{}, err
	}
	before, err := s.head(ctx, first, p.Model)
	if err != nil {
		return registry.Head{}, err
	}
	if before.Release == r.Digest {
		return before, s.settle(ctx, environment, p.Model)
	}
	if err := s.announce(ctx, environment, registry.Intent{Environment: first, Model: p.Model, Release: r.Digest, Begun: s.Now()}); err != nil {
		return registry.Head{}, err
	}
	err = s.move(ctx, environment, registry.Change{
		Event: registry.Event{Time: s.Now(), Kind: registry.EventPublish, Environment: first, Model: p.Model,
			Version: r.Tag(), Release: r.Digest, Previous: before.Release},
		Move: &registry.HeadMove{Expect: before.Release},
		Tags: tagMoves(registry.Repository(first, p.Model), r, false),
	})
	if err != nil {
		return registry.Head{}, err
	}
	return s.Catalog.Head(ctx, first, p.Model)
}

// tagMoves sets every tag of the release; the mirror of the head always moves.
func tagMoves(repository string, r registry.Release, immutable bool) []registry.TagMove {
	var moves []registry.TagMove
	for tag, d := range r.Tags() {
		moves = append(moves, registry.TagMove{Repository: repository, Tag: tag, Digest: d, Immutable: immutable && tag != registry.HeadTag})
	}
	return moves
}
