package service

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// relist restores evidence about a release that the history names but that another client
// pushed out of a list of referrers. judge reports evidence that no longer exists.
func (s *Service) relist(ctx context.Context, environment registry.Environment, r registry.Release) error {
	if !environment.External() {
		return nil
	}
	repository := registry.Repository(environment.Name, r.Model)
	listed := make(map[registry.Digest]bool)
	for _, subject := range r.Subjects() {
		for b, err := range s.Content.Evidence(ctx, repository, subject.Digest) {
			if err != nil {
				return err
			}
			listed[b.Digest] = true
		}
	}
	events, err := s.History(ctx, registry.HistoryQuery{Environment: environment.Name, Model: r.Model})
	if err != nil {
		return err
	}
	for _, d := range recorded(events, r) {
		if listed[d] {
			continue
		}
		if err := s.Mirror.Relist(ctx, repository, d); err != nil && !registry.HasCode(err, registry.CodeNotFound) {
			return err
		}
	}
	return nil
}

// recorded lists the evidence about a release that events name.
func recorded(events []registry.Event, r registry.Release) []registry.Digest {
	var all []registry.Digest
	for _, e := range events {
		if concerns(e, r) {
			all = append(all, e.Evidence...)
		}
	}
	return all
}
