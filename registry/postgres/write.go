package postgres

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

var _ catalog.Writer = tx{}

// SetHead writes the row of a head.
func (q tx) SetHead(ctx context.Context, h history.Head) error {
	return q.HeadSet(ctx, dbsqlc.HeadSetParams{
		Environment: h.Environment, Model: h.Model, Release: string(h.Release), Version: h.Version,
		Since: h.Since, Hold: h.Hold,
	})
}

// MoveTag sets a tag in one statement, because tags are also set outside of changes.
func (q tx) MoveTag(ctx context.Context, move storage.TagMove) error {
	set, err := q.TagSet(ctx, dbsqlc.TagSetParams{
		Repository: move.Repository, Tag: move.Tag, Digest: string(move.Digest), Immutable: move.Immutable,
	})
	if err != nil || set > 0 {
		return err
	}
	have, err := q.Tag(ctx, move.Repository, move.Tag)
	if err != nil {
		return err
	}
	return catalog.TagTaken(move, have)
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
