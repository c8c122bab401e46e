package mem

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"mlpromote.dev/mlpromote/registry"
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

// Apply checks everything first and then changes everything.
func (db *DB) Apply(ctx context.Context, c registry.Change) (registry.Event, error) {
	if err := ctx.Err(); err != nil {
		return registry.Event{}, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	var before registry.Event
	if n := len(db.history); n > 0 {
		before = db.history[n-1]
	}
	c.Event.Evidence = slices.Clone(c.Event.Evidence)
	event, err := c.Event.Chain(before)
	if err != nil {
		return registry.Event{}, err
	}
	if err := cmp.Or(db.checkMove(event, c.Move), db.checkTags(c.Tags)); err != nil {
		return registry.Event{}, err
	}
	if c.Move != nil {
		db.move(event, *c.Move)
	}
	for _, t := range c.Tags {
		db.tags[tagKey{t.Repository, t.Tag}] = t.Digest
	}
	if c.EndIntent {
		delete(db.intents, headKey{event.Environment, event.Model})
	}
	db.history = append(db.history, event)
	event.Evidence = slices.Clone(event.Evidence)
	return event, nil
}

func (db *DB) checkMove(event registry.Event, move *registry.HeadMove) error {
	if move == nil {
		return nil
	}
	if event.Release == "" {
		return registry.Errorf(registry.CodeInvalid, "head of %s in %s: the event names no release to move it to", event.Model, event.Environment)
	}
	if have := db.heads[headKey{event.Environment, event.Model}].Release; have != move.Expect {
		return registry.Errorf(registry.CodeConflict, "head of %s in %s: is %q, expected %q: somebody else moved it first; look at it and try again", event.Model, event.Environment, have, move.Expect)
	}
	return nil
}

// checkTags looks at the moves in order, as if the earlier ones had been made.
func (db *DB) checkTags(moves []registry.TagMove) error {
	made := make(map[tagKey]registry.Digest)
	for _, t := range moves {
		key := tagKey{t.Repository, t.Tag}
		have := cmp.Or(made[key], db.tags[key])
		if t.Immutable && have != "" && have != t.Digest {
			return registry.Errorf(registry.CodeConflict, "tag %s in %s: names %s and must not move to %s; choose a new version", t.Tag, t.Repository, have, t.Digest)
		}
		made[key] = t.Digest
	}
	return nil
}

// move sets a head. It is in place since the event that brought its release.
func (db *DB) move(event registry.Event, move registry.HeadMove) {
	key := headKey{event.Environment, event.Model}
	since := event.Time
	if have, ok := db.heads[key]; ok && have.Release == event.Release {
		since = have.Since
	}
	db.heads[key] = registry.Head{
		Environment: event.Environment, Model: event.Model,
		Release: event.Release, Version: event.Version,
		Since: since, Hold: move.Hold,
	}
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
		(q.Subject == "" || e.Subject == q.Subject)
}
