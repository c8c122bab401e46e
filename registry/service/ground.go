package service

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// groundRounds is how often a decision is repeated because its ground changed.
const groundRounds = 5

// decided calls decide again while its ground has changed. Each time decide reads the ground
// first, evaluates everything again, and lets the catalog compare the ground.
func decided(decide func() error) error {
	var err error
	for range groundRounds {
		if err = decide(); !registry.GroundMoved(err) {
			return err
		}
	}
	return registry.Errorf(registry.CodeConflict,
		"decided %d times, but the state changed each time before the change was applied: %w", groundRounds, err)
}

// ground reads the state that a decision about a release rests on.
func (s *Service) ground(ctx context.Context, environment string, r registry.Release) (registry.Ground, error) {
	standing, err := s.Catalog.Standing(ctx, environment, r.Model)
	return registry.NewGround(standing, s.Config.Environments, r), err
}

// confirm compares a ground with the current catalog. Decisions that change nothing use it.
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
