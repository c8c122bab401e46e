package sqlite

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Apply applies a change in one transaction.
func (db *DB) Apply(ctx context.Context, c storage.Change) (history.Event, error) {
	var outcome catalog.Outcome
	err := db.transaction(ctx, func(q *dbsqlc.Queries) (err error) {
		rows := tx{q, db.now()}
		if outcome, err = catalog.Decide(ctx, catalog.Reader{Rows: rows}, c); err != nil {
			return err
		}
		return outcome.Write(ctx, rows)
	})
	if err != nil {
		return history.Event{}, db.interpretError(
			fmt.Sprintf("%s %s in %s", c.Event.Kind, c.Event.Model, c.Event.Environment), err)
	}
	return outcome.Event, nil
}

var _ catalog.Writer = tx{}

// SetHead writes the row of a head.
func (q tx) SetHead(ctx context.Context, h history.Head) error {
	return q.HeadSet(ctx, dbsqlc.HeadSetParams{
		Environment: h.Environment, Model: h.Model, Release: string(h.Release), Version: h.Version,
		Since: h.Since.UnixMicro(), Hold: h.Hold,
	})
}

// MoveTag sets a tag.
func (q tx) MoveTag(ctx context.Context, t storage.TagMove) error {
	return q.TagSet(ctx, dbsqlc.TagSetParams{Repository: t.Repository, Tag: t.Tag, Digest: string(t.Digest)})
}

// SetConfigurationPart writes the row of a part.
func (q tx) SetConfigurationPart(ctx context.Context, p history.ConfigurationPart) error {
	return q.ConfigurationSet(ctx, dbsqlc.ConfigurationSetParams{Part: p.Name, Digest: string(p.Digest)})
}

// EndIntent deletes the intent for a release.
func (q tx) EndIntent(ctx context.Context, environment, model string, release registry.Digest) error {
	return q.IntentEndFor(ctx,
		dbsqlc.IntentEndForParams{Environment: environment, Model: model, Release: string(release)})
}

// AddToCounter adds to a counter.
func (q tx) AddToCounter(ctx context.Context, name string, n int64) error {
	return q.CounterAdd(ctx, dbsqlc.CounterAddParams{Name: name, N: n})
}

// AppendEvent adds a row to the history.
func (q tx) AppendEvent(ctx context.Context, seq int64, body string) error {
	return q.HistoryAppend(ctx, dbsqlc.HistoryAppendParams{Seq: seq, Body: body})
}
