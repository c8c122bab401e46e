package mem

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/storage"
)

// tx reads and writes for a change. The caller holds the lock.
type tx struct{ *DB }

var (
	_ catalog.Tx        = tx{}
	_ catalog.StateRows = tx{}
	_ catalog.Writer    = tx{}
)

// Last returns the newest event, or the zero Event.
func (t tx) Last(context.Context) (history.Event, error) {
	if n := len(t.history); n > 0 {
		return t.history[n-1], nil
	}
	return history.Event{}, nil
}

// ModelState returns the state of a model in an environment.
func (t tx) ModelState(ctx context.Context, environment, model string) (history.ModelState, error) {
	return catalog.ModelState(ctx, t, environment, model)
}

// Since lists the events of a model after a sequence number.
func (t tx) Since(_ context.Context, model string, after int64) ([]history.Event, error) {
	return t.selected(history.HistoryQuery{Model: model, After: after}), nil
}

// Tag returns the digest that a tag names, or "".
func (t tx) Tag(_ context.Context, repository, tag string) (registry.Digest, error) {
	return t.tags[tagKey{repository, tag}], nil
}

// Recorded reports whether a manifest is recorded, and unmarks it.
func (t tx) Recorded(_ context.Context, m storage.ManifestPlace) (bool, error) {
	key := recordKey{member{m.Repository, m.Digest}, true}
	_, ok := t.ages[key]
	if ok {
		t.unmark(key)
	}
	return ok, nil
}

// HeadRow returns a head, or the zero Head.
func (t tx) HeadRow(_ context.Context, environment, model string) (history.Head, error) {
	return t.heads[headKey{environment, model}], nil
}

// CounterGet returns a counter.
func (t tx) CounterGet(_ context.Context, name string) (int64, error) { return t.counters[name], nil }

// ConfigurationParts lists the parts of the agreed configuration.
func (t tx) ConfigurationParts(context.Context) ([]history.ConfigurationPart, error) {
	return t.agreed.Parts(), nil
}

// Documents lists a page of documents. Of node types alone there are any.
func (t tx) Documents(_ context.Context, _, after string, limit int) ([]catalog.DocumentRow, error) {
	return t.nodeTypes.rows(after, limit), nil
}

// NodeTypes is the table of named nodes.
func (db *DB) NodeTypes() storage.NodeTypes { return db.nodeTypes }

// HistoryLastSeq returns the number of the newest event.
func (t tx) HistoryLastSeq(context.Context) (int64, error) { return int64(len(t.history)), nil }

// SetHead sets a head.
func (t tx) SetHead(_ context.Context, h history.Head) error {
	t.heads[headKey{h.Environment, h.Model}] = h
	return nil
}

// PutManifest records a manifest.
func (t tx) PutManifest(_ context.Context, repository string, m storage.Manifest) error {
	t.putManifest(repository, m)
	return nil
}

// MoveTag sets a tag.
func (t tx) MoveTag(_ context.Context, m storage.TagMove) error {
	t.tags[tagKey{m.Repository, m.Tag}] = m.Digest
	return nil
}

// SetConfigurationPart replaces a part of the agreed configuration.
func (t tx) SetConfigurationPart(_ context.Context, p history.ConfigurationPart) error {
	t.agreed.Set(p.Name, p.Digest)
	return nil
}

// EndIntent deletes the intent for a release.
func (t tx) EndIntent(_ context.Context, environment, model string, release registry.Digest) error {
	if key := (headKey{environment, model}); t.intents[key].Release == release {
		delete(t.intents, key)
	}
	return nil
}

// AddToCounter adds to a counter.
func (t tx) AddToCounter(_ context.Context, name string, n int64) error {
	t.counters[name] += n
	return nil
}

// AppendEvent adds an event to the history.
func (t tx) AppendEvent(_ context.Context, _ int64, body string) error {
	e, err := catalog.DecodeEvent(body)
	if err != nil {
		return err
	}
	t.history = append(t.history, e)
	t.record(e)
	return nil
}
