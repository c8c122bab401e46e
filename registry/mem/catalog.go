package mem

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
)

// Head gives the head of a model in an environment.
func (db *DB) Head(ctx context.Context, environment, model string) (registry.Head, error) {
	if err := ctx.Err(); err != nil {
		return registry.Head{}, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	head, ok := db.heads[headKey{environment, model}]
	if !ok {
		return registry.Head{}, registry.Errorf(registry.CodeNotFound, "head of %s in %s: not found", model, environment)
	}
	return head, nil
}

// Heads lists heads by environment and model.
func (db *DB) Heads(ctx context.Context, environment, model string) ([]registry.Head, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	var heads []registry.Head
	for key, head := range db.heads {
		if (environment == "" || key.environment == environment) && (model == "" || key.model == model) {
			heads = append(heads, head)
		}
	}
	slices.SortFunc(heads, func(a, b registry.Head) int {
		return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.Model, b.Model))
	})
	return heads, nil
}

// Apply reads everything first and then changes everything.
func (db *DB) Apply(ctx context.Context, c registry.Change) (registry.Event, error) {
	if err := ctx.Err(); err != nil {
		return registry.Event{}, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	c.Event.Evidence = slices.Clone(c.Event.Evidence)
	o, err := catalog.Decide(ctx, tx{db}, c)
	if err != nil {
		return registry.Event{}, err
	}
	key := headKey{o.Event.Environment, o.Event.Model}
	if o.Head != nil {
		db.heads[key] = *o.Head
	}
	for _, m := range o.Adds {
		db.putManifest(m.Repository, m.Manifest)
	}
	for _, t := range o.Tags {
		db.tags[tagKey{t.Repository, t.Tag}] = t.Digest
	}
	if o.Agreed != nil {
		db.agreed = o.Agreed.Over(db.agreed)
	}
	if o.EndIntent && db.intents[key].Release == o.Event.Release {
		delete(db.intents, key)
	}
	if o.Restricts {
		db.restrictions++
	}
	db.history = append(db.history, o.Event)
	db.record(o.Event)
	o.Event.Evidence = slices.Clone(o.Event.Evidence)
	return o.Event, nil
}

// ModelState gives where the catalog stands on a model in an environment.
func (db *DB) ModelState(ctx context.Context, environment, model string) (registry.ModelState, error) {
	if err := ctx.Err(); err != nil {
		return registry.ModelState{}, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	return tx{db}.ModelState(ctx, environment, model)
}

// tx is what changes read of the catalog. The caller holds the lock.
type tx struct{ *DB }

var _ catalog.Tx = tx{}

// Last gives the newest event, or the zero Event.
func (t tx) Last(context.Context) (registry.Event, error) {
	if n := len(t.history); n > 0 {
		return t.history[n-1], nil
	}
	return registry.Event{}, nil
}

// ModelState gives where the catalog stands on a model in an environment.
func (t tx) ModelState(_ context.Context, environment, model string) (registry.ModelState, error) {
	return registry.ModelState{
		Environment: environment, Model: model, Head: t.heads[headKey{environment, model}],
		Seq: int64(len(t.history)), Restrictions: t.restrictions, Agreed: t.agreed,
	}, nil
}

// Since lists the events of a model after a sequence number.
func (t tx) Since(_ context.Context, model string, after int64) ([]registry.Event, error) {
	return t.selected(registry.HistoryQuery{Model: model, After: after}), nil
}

// Tag gives what a tag names, or "".
func (t tx) Tag(_ context.Context, repository, tag string) (registry.Digest, error) {
	return t.tags[tagKey{repository, tag}], nil
}

// History lists the events that were there when the sequence was started.
func (db *DB) History(ctx context.Context, q registry.HistoryQuery) iter.Seq2[registry.Event, error] {
	return func(yield func(registry.Event, error) bool) {
		each(ctx, db.events(q), yield)
	}
}

// LastEvent gives the hash of the newest event of a model in an environment.
func (db *DB) LastEvent(ctx context.Context, environment, model string) (registry.Digest, error) {
	for e, err := range db.History(ctx, registry.HistoryQuery{Environment: environment, Model: model, Descending: true, Limit: 1}) {
		return e.Hash, err
	}
	return "", ctx.Err()
}

func (db *DB) events(q registry.HistoryQuery) []registry.Event {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.selected(q)
}

// selected is events for who holds the lock.
func (db *DB) selected(q registry.HistoryQuery) []registry.Event {
	var found []registry.Event
	for _, e := range db.history {
		if selects(q, e) {
			e.Evidence = slices.Clone(e.Evidence)
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

func selects(q registry.HistoryQuery, e registry.Event) bool {
	return e.Seq > q.After && (q.Before == 0 || e.Seq < q.Before) &&
		(q.Environment == "" || e.Environment == q.Environment) &&
		(q.Model == "" || e.Model == q.Model) &&
		(q.Kind == "" || e.Kind == q.Kind) &&
		(q.Subject == "" || e.Subject == q.Subject) &&
		(q.Hash == "" || e.Hash == q.Hash)
}

// Recorded reports whether a manifest is recorded, and unmarks it.
func (t tx) Recorded(_ context.Context, m registry.ManifestPlace) (bool, error) {
	key := recordKey{member{m.Repository, m.Digest}, true}
	_, ok := t.ages[key]
	if ok {
		t.unmark(key)
	}
	return ok, nil
}
