package mem

import (
	"context"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
)

// Recorded returns the first event of a model that names each bundle.
func (db *DB) Recorded(ctx context.Context, model string, bundles []registry.Digest) (map[registry.Digest]history.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	records := make(map[registry.Digest]history.Record)
	for _, d := range bundles {
		if r, ok := db.recorded[recordedKey{model, d}]; ok && db.names(r.Seq, model, d) {
			records[d] = r
		}
	}
	return records, nil
}

// Reindex makes the list of a model anew, from the history.
func (db *DB) Reindex(ctx context.Context, model string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	maps.DeleteFunc(db.recorded, func(key recordedKey, _ history.Record) bool { return key.model == model })
	for _, e := range db.history {
		if e.Model == model {
			db.record(e)
		}
	}
	return nil
}

// names reports whether a row of the history is of a model and names a bundle.
func (db *DB) names(row int64, model string, bundle registry.Digest) bool {
	if row < 1 || row > int64(len(db.history)) {
		return false
	}
	e := db.history[row-1]
	return e.Model == model && slices.Contains(e.Evidence, bundle)
}

// record notes the bundles of an event that no event named before.
func (db *DB) record(e history.Event) {
	for _, d := range e.Evidence {
		key := recordedKey{e.Model, d}
		if _, ok := db.recorded[key]; !ok {
			db.recorded[key] = history.Record{Seq: e.Seq, Time: e.Time}
		}
	}
}
