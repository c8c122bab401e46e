package sqlite

import (
	"context"
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// Apply applies a change in one transaction.
func (db *DB) Apply(ctx context.Context, c registry.Change) (registry.Event, error) {
	var outcome catalog.Outcome
	err := db.transaction(ctx, func(q *dbsqlc.Queries) (err error) {
		if outcome, err = catalog.Decide(ctx, tx{q}, c); err != nil {
			return err
		}
		return record(ctx, q, outcome, db.now())
	})
	if err != nil {
		return registry.Event{}, db.interpretError(
			fmt.Sprintf("%s %s in %s", c.Event.Kind, c.Event.Model, c.Event.Environment), err)
	}
	return outcome.Event, nil
}

// record writes the outcome of a change, now by the clock of the catalog.
func record(ctx context.Context, q *dbsqlc.Queries, o catalog.Outcome, now time.Time) error {
	if h := o.Head; h != nil {
		if err := q.HeadSet(ctx, dbsqlc.HeadSetParams{
			Environment: h.Environment, Model: h.Model, Release: string(h.Release), Version: h.Version,
			Since: h.Since.UnixMicro(), Hold: h.Hold,
		}); err != nil {
			return err
		}
	}
	for _, m := range o.Adds {
		if err := putManifest(ctx, q, m.Repository, m.Manifest, now); err != nil {
			return err
		}
	}
	for _, t := range o.Tags {
		if err := q.TagSet(ctx, dbsqlc.TagSetParams{Repository: t.Repository, Tag: t.Tag, Digest: string(t.Digest)}); err != nil {
			return err
		}
	}
	if o.Agreed != nil {
		if err := setConfiguration(ctx, q, *o.Agreed); err != nil {
			return err
		}
	}
	if o.EndIntent {
		if err := q.IntentEndFor(ctx, dbsqlc.IntentEndForParams{
			Environment: o.Event.Environment, Model: o.Event.Model, Release: string(o.Event.Release),
		}); err != nil {
			return err
		}
	}
	if o.Restricts {
		if err := q.CounterAdd(ctx, dbsqlc.CounterAddParams{Name: restrictions, N: 1}); err != nil {
			return err
		}
	}
	body, err := catalog.EncodeEvent(o.Event)
	if err != nil {
		return err
	}
	return q.HistoryAppend(ctx, dbsqlc.HistoryAppendParams{Seq: o.Event.Seq, Body: body})
}
