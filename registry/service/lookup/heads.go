package lookup

import (
	"context"

	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// Heads lists heads.
func Heads(ctx context.Context, s *backend.Backend, environment, model string) ([]history.Head, error) {
	if environment != "" {
		if _, err := s.Find(environment); err != nil {
			return nil, err
		}
	}
	heads, err := s.Catalog.Heads(ctx, environment, model)
	if err != nil {
		return nil, err
	}
	return heads, markSkipped(ctx, s, heads)
}

// markSkipped says of heads that came by a break-glass promotion what that skipped. The promotion
// that counts is the last one of the release.
func markSkipped(ctx context.Context, s *backend.Backend, heads []history.Head) error {
	for i, h := range heads {
		e, err := s.Find(h.Environment)
		if err != nil || !e.Protected() {
			continue // heads of an environment that is no longer in the file are listed too
		}
		query := history.HistoryQuery{Environment: h.Environment, Model: h.Model, Kind: history.EventPromote, Descending: true}
		for event, err := range s.Catalog.History(ctx, query) {
			if err != nil {
				return err
			}
			if event.Release == h.Release {
				if len(event.Skipped) > 0 {
					heads[i].BreakGlass = event.Reason
				}
				break
			}
		}
	}
	return nil
}
