package service

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// groundRounds is how often a decision is made whose ground moves before it is carried out.
const groundRounds = 5

// decided calls decide again as long as it finds that its ground has moved. Each time decide
// takes the ground first, judges everything on it anew, and lets the catalog compare it.
func decided(decide func() error) error {
	var err error
	for range groundRounds {
		if err = decide(); !registry.GroundMoved(err) {
			return err
		}
	}
	return registry.Errorf(registry.CodeConflict, "decided %d times, and something changed each time before it was done: %w", groundRounds, err)
}

// ground takes what a decision about a release rests on.
func (s *Service) ground(ctx context.Context, environment string, r registry.Release) (registry.Ground, error) {
	standing, err := s.Catalog.Standing(ctx, environment, r.Model)
	return registry.NewGround(standing, s.Config.Environments, r), err
}

// confirm compares a ground with where the catalog stands now, for decisions that change
// nothing.
func (s *Service) confirm(ctx context.Context, g registry.Ground) error {
	now, err := s.Catalog.Standing(ctx, g.Environment, g.Model)
	if err != nil {
		return err
	}
	since, err := s.History(ctx, registry.HistoryQuery{Model: g.Model, After: g.Seq})
	if err != nil {
		return err
	}
	return g.Moved(now, since)
}
