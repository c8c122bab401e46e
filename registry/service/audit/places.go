package audit

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// modelPlace is a model in an environment.
type modelPlace struct{ environment, model string }

// unique removes duplicates and keeps the first of each.
func unique[T comparable](all []T) []T {
	seen := make(map[T]bool)
	return slices.DeleteFunc(all, func(v T) bool {
		again := seen[v]
		seen[v] = true
		return again
	})
}

// withHeads lists the places that have a head, and every protected environment for each model
// that has a head anywhere. The head of such an environment may be missing.
func withHeads(ctx context.Context, s *backend.Backend) ([]modelPlace, error) {
	heads, err := s.Catalog.Heads(ctx, "", "")
	if err != nil {
		return nil, err
	}
	var places []modelPlace
	for _, h := range heads {
		places = append(places, modelPlace{h.Environment, h.Model})
	}
	for _, h := range heads {
		for _, e := range s.Environments.List {
			if e.Protected() {
				places = append(places, modelPlace{e.Name, h.Model})
			}
		}
	}
	return unique(places), nil
}

// everMoved is withHeads plus the places that had a head according to the history.
func everMoved(ctx context.Context, s *backend.Backend) ([]modelPlace, error) {
	places, err := withHeads(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, kind := range []history.EventKind{history.EventPublish, history.EventPromote} {
		for e, err := range s.Catalog.History(ctx, history.HistoryQuery{Kind: kind}) {
			if err != nil {
				return nil, err
			}
			places = append(places, modelPlace{e.Environment, e.Model})
		}
	}
	return unique(places), nil
}
