package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Record is the first event of the history that names a bundle.
type Record struct {
	Seq  int64 // of the event
	Time time.Time
}

// HistoryIndex looks up evidence in the history of all environments.
type HistoryIndex interface {
	// Recorded returns the first event of the model that names each bundle. It reads an index and
	// leaves out bundles whose index entry names an event that does not name them. It costs one
	// lookup by key per bundle, independent of the length of the history.
	Recorded(ctx context.Context, model string, bundles []registry.Digest) (map[registry.Digest]Record, error)
	// Reindex rebuilds that index for a model, from the history.
	Reindex(ctx context.Context, model string) error
}

// NamedFirst maps each bundle to the first event of a model's history that names it.
type NamedFirst map[registry.Digest]NamedIn

// NamedIn is an event that names a bundle.
type NamedIn struct {
	Seq         int64
	Environment string
}

// Read adds the next newer event of the model.
func (n NamedFirst) Read(e Event) {
	for _, d := range e.Evidence {
		if _, ok := n[d]; !ok {
			n[d] = NamedIn{e.Seq, e.Environment}
		}
	}
}

// Faults compares the result of [HistoryIndex] for the same bundles with the history. It returns one
// fault for each environment in which they differ.
func (n NamedFirst) Faults(model string, records map[registry.Digest]Record) []HistoryFault {
	wrong := make(map[string][]registry.Digest)
	for d, in := range n {
		if records[d].Seq != in.Seq {
			wrong[in.Environment] = append(wrong[in.Environment], d)
		}
	}
	var faults []HistoryFault
	for _, environment := range slices.Sorted(maps.Keys(wrong)) {
		bundles := wrong[environment]
		slices.SortFunc(bundles, func(a, b registry.Digest) int { return cmp.Or(cmp.Compare(n[a].Seq, n[b].Seq), cmp.Compare(a, b)) })
		first := bundles[0]
		listed := "not at all"
		if r := records[first]; r.Seq != 0 {
			listed = fmt.Sprintf("in event %d", r.Seq)
		}
		faults = append(faults, HistoryFault{Environment: environment, Model: model, Detail: fmt.Sprintf(
			"the catalog's list of when evidence came in differs from the history in %d places: event %d names %s first, and "+
				"the list has it %s, so policy could use another report",
			len(bundles),
			n[first].Seq,
			first,
			listed,
		)})
	}
	return faults
}
