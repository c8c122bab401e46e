package audit

import (
	"context"
	"errors"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// recordFaults compares the catalog's list of evidence with the history, for one model or for
// all. The order in the list decides which report wins. It returns one fault per model and
// environment.
func recordFaults(ctx context.Context, s *backend.Backend, model string) ([]history.HistoryFault, error) {
	first := make(map[string]history.NamedFirst)
	for e, err := range s.Catalog.History(ctx, history.HistoryQuery{Model: model}) {
		if err != nil {
			return nil, err
		}
		if first[e.Model] == nil {
			first[e.Model] = make(history.NamedFirst)
		}
		first[e.Model].Read(e)
	}
	var faults []history.HistoryFault
	for _, model := range slices.Sorted(maps.Keys(first)) {
		records, err := s.Records.Recorded(ctx, model, slices.Collect(maps.Keys(first[model])))
		if err != nil {
			return nil, err
		}
		faults = append(faults, first[model].Faults(model, records)...)
	}
	return faults, nil
}

// misplaced refuses a promotion for which the catalog's order of evidence differs from the
// history up to its basis.
func misplaced(ctx context.Context, s *backend.Backend, basis history.ModelState, claims []evidence.Claim) error {
	all := make(history.NamedFirst)
	for e, err := range s.Catalog.History(ctx, history.HistoryQuery{Model: basis.Model, Before: basis.Seq + 1}) {
		if err != nil {
			return err
		}
		all.Read(e)
	}
	first, records := make(history.NamedFirst), make(map[registry.Digest]history.Record)
	for _, c := range claims {
		if in, ok := all[c.Bundle]; ok {
			first[c.Bundle], records[c.Bundle] = in, history.Record{Seq: c.Recorded}
		}
	}
	var faults []error
	for _, f := range first.Faults(basis.Model, records) {
		faults = append(faults, f.Err())
	}
	return errors.Join(faults...)
}
