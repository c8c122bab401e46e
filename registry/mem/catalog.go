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

// selected is events for who holds the lock.
func (db *DB) selected(q history.HistoryQuery) []history.Event {
	var found []history.Event
	for _, e := range db.history {
		if selects(q, e) {
			e.Evidence, e.Skipped = slices.Clone(e.Evidence), slices.Clone(e.Skipped)
			found = append(found, e)
		}
	}
	if q.Descending {
		slices.Reverse(found)
	}
	if q.Limit > 0 {
		found = found[:min(q.Limit, len(found))]
	}
	return found
}

func selects(q history.HistoryQuery, e history.Event) bool {
	return e.Seq > q.After && (q.Before == 0 || e.Seq < q.Before) &&
		(q.Environment == "" || e.Environment == q.Environment) &&
		(q.Model == "" || e.Model == q.Model) &&
		(q.Kind == "" || e.Kind == q.Kind) &&
		(q.Subject == "" || e.Subject == q.Subject) &&
		(q.Hash == "" || e.Hash == q.Hash) &&
		q.SelectsBy(e)
}
