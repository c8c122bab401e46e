package mem

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Head returns the head of a model in an environment.
func (db *DB) Head(ctx context.Context, environment, model string) (history.Head, error) {
	if err := ctx.Err(); err != nil {
		return history.Head{}, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	head, ok := db.heads[headKey{environment, model}]
	if !ok {
		return history.Head{}, registry.Errorf(registry.CodeNotFound, "head of %s in %s: not found", model, environment)
	}
	return head, nil
}

// Heads lists heads by environment and model.
func (db *DB) Heads(ctx context.Context, environment, model string) ([]history.Head, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	var heads []history.Head
	for key, head := range db.heads {
		if (environment == "" || key.environment == environment) && (model == "" || key.model == model) {
			heads = append(heads, head)
		}
	}
	slices.SortFunc(heads, func(a, b history.Head) int {
		return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.Model, b.Model))
	})
	return heads, nil
}

// Apply reads and writes under one lock. Nothing that it writes can fail halfway.
func (db *DB) Apply(ctx context.Context, c storage.Change) (history.Event, error) {
	if err := ctx.Err(); err != nil {
		return history.Event{}, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	o, err := catalog.Decide(ctx, tx{db}, c)
	if err != nil {
		return history.Event{}, err
	}
	if err := o.Write(ctx, tx{db}); err != nil {
		return history.Event{}, err
	}
	return o.Event, nil
}

// ModelState returns the catalog's state of a model in an environment.
func (db *DB) ModelState(ctx context.Context, environment, model string) (history.ModelState, error) {
	if err := ctx.Err(); err != nil {
		return history.ModelState{}, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	return tx{db}.ModelState(ctx, environment, model)
}

// History lists the events that were there when the sequence was started.
func (db *DB) History(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		yieldAll(ctx, db.events(q), yield)
	}
}

// LastEvent returns the hash of the newest event of a model in an environment.
func (db *DB) LastEvent(ctx context.Context, environment, model string) (registry.Digest, error) {
	for e, err := range db.History(ctx, history.HistoryQuery{Environment: environment, Model: model, Descending: true}) {
		if err != nil || e.Environment == environment && e.Model == model {
			return e.Hash, err
		}
	}
	return "", ctx.Err()
}

func (db *DB) events(q history.HistoryQuery) []history.Event {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.selected(q)
}
