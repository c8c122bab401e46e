package lookup

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// PlaceInHistory sets when the history first named each claim, and how much of the history its
// verifier could know.
func PlaceInHistory(ctx context.Context, s *backend.Backend, model string, claims []evidence.Claim) error {
	bundles := make([]registry.Digest, len(claims))
	for i, c := range claims {
		bundles[i] = c.Bundle
	}
	records, err := s.Records.Recorded(ctx, model, bundles)
	if err != nil {
		return err
	}
	numbers := make(map[registry.Digest]int64) // of events, by hash, since the reports of one run name the same event
	for i, c := range claims {
		record := records[c.Bundle]
		claims[i].Recorded, claims[i].RecordedAt = record.Seq, record.Time
		hash := c.HistorySeen()
		if hash == "" {
			continue
		}
		if _, ok := numbers[hash]; !ok {
			if numbers[hash], err = EventNumber(ctx, s, model, hash); err != nil {
				return err
			}
		}
		claims[i].Observed = numbers[hash]
	}
	return nil
}

// EventNumber returns the number of the model's event with a hash, or 0 if there is no such
// event.
func EventNumber(ctx context.Context, s *backend.Backend, model string, hash registry.Digest) (int64, error) {
	for e, err := range s.Catalog.History(ctx, history.HistoryQuery{Model: model, Hash: hash, Limit: 1}) {
		return e.Seq, err
	}
	return 0, nil
}
