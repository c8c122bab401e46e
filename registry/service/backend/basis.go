package backend

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
)

// decisionRounds is how often a decision is repeated because its basis changed.
const decisionRounds = 5

// Decide calls decide again while its basis has changed. Each time decide reads the basis
// first, evaluates everything again, and lets the catalog compare the basis.
func Decide(decide func() error) error {
	var err error
	for range decisionRounds {
		if err = decide(); !history.BasisOutdated(err) {
			return err
		}
	}
	return registry.Errorf(registry.CodeConflict,
		"decided %d times, but the state changed each time before the change was applied: %w", decisionRounds, err)
}

// Basis reads the state that a decision about a release rests on.
func Basis(ctx context.Context, s *Backend, environment string, r artifact.Release) (history.DecisionBasis, error) {
	standing, err := s.Catalog.ModelState(ctx, environment, r.Model)
	return history.NewDecisionBasis(standing, s.Environments, r), err
}

// Confirm compares a basis with the current catalog. Decisions that change nothing use it.
func Confirm(ctx context.Context, s *Backend, g history.DecisionBasis) error {
	now, err := s.Catalog.ModelState(ctx, g.Environment, g.Model)
	if err != nil {
		return err
	}
	since, err := s.History(ctx, history.HistoryQuery{Model: g.Model, After: g.Seq})
	if err != nil {
		return err
	}
	return g.Moved(now, since)
}
