package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// restrictions is the counter of events that restrict releases.
const restrictions = "restrictions"

// tx reads the catalog for a change.
type tx struct{ *dbsqlc.Queries }

var _ catalog.Tx = tx{}

// Last returns the newest event, or the zero Event.
func (q tx) Last(ctx context.Context) (registry.Event, error) {
	body, err := q.HistoryLast(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return registry.Event{}, nil
	}
	if err != nil {
		return registry.Event{}, err
	}
	return catalog.DecodeEvent(body)
}

// ModelState returns the state of a model in an environment.
func (q tx) ModelState(ctx context.Context, environment, model string) (registry.ModelState, error) {
	s := registry.ModelState{Environment: environment, Model: model}
	row, err := q.HeadGet(ctx, dbsqlc.HeadGetParams{Environment: environment, Model: model})
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return s, err
	}
	if err == nil {
		s.Head = head(row)
	}
	if s.Restrictions, err = q.CounterGet(ctx, restrictions); err != nil {
		return s, err
	}
	if s.Agreed, err = configuration(ctx, q.Queries); err != nil {
		return s, err
	}
	s.Seq, err = q.HistoryLastSeq(ctx)
	return s, err
}

// Since lists the events of a model after a sequence number.
func (q tx) Since(ctx context.Context, model string, after int64) ([]registry.Event, error) {
	bodies, err := q.HistorySince(ctx, dbsqlc.HistorySinceParams{Model: model, After: after})
	if err != nil {
		return nil, err
	}
	return catalog.DecodeEvents(bodies)
}

// Tag returns the digest that a tag names, or "".
func (q tx) Tag(ctx context.Context, repository, tag string) (registry.Digest, error) {
	d, err := q.TagGet(ctx, dbsqlc.TagGetParams{Repository: repository, Tag: tag})
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return registry.Digest(d), err
}

// ModelState returns the state of a model in an environment.
func (db *DB) ModelState(ctx context.Context, environment, model string) (registry.ModelState, error) {
	var standing registry.ModelState
	err := db.snapshot(ctx, func(q *dbsqlc.Queries) (err error) {
		standing, err = tx{q}.ModelState(ctx, environment, model)
		return err
	})
	return standing, db.interpretError(fmt.Sprintf("state of %s in %s", model, environment), err)
}

// Recorded reports whether a manifest is recorded, and unmarks it.
func (q tx) Recorded(ctx context.Context, m registry.ManifestPlace) (bool, error) {
	n, err := q.ManifestRescind(ctx, dbsqlc.ManifestRescindParams{Repository: m.Repository, Digest: string(m.Digest)})
	return n > 0, err
}
