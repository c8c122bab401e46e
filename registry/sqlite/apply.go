package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// Apply makes a change in one transaction.
func (db *DB) Apply(ctx context.Context, c registry.Change) (registry.Event, error) {
	var event registry.Event
	err := db.transaction(ctx, func(q *dbsqlc.Queries) (err error) {
		if event, err = chain(ctx, q, c.Event); err != nil {
			return err
		}
		if c.Move != nil {
			if err := moveHead(ctx, q, event, *c.Move); err != nil {
				return err
			}
		}
		for _, move := range c.Tags {
			if err := moveTag(ctx, q, move); err != nil {
				return err
			}
		}
		if c.EndIntent {
			if err := q.IntentEnd(ctx, dbsqlc.IntentEndParams{Environment: event.Environment, Model: event.Model}); err != nil {
				return err
			}
		}
		return appendEvent(ctx, q, event)
	})
	if err != nil {
		return registry.Event{}, db.interpretError(fmt.Sprintf("%s %s in %s", c.Event.Kind, c.Event.Model, c.Event.Environment), err)
	}
	return event, nil
}

// chain gives event its place after the last one.
func chain(ctx context.Context, q *dbsqlc.Queries, event registry.Event) (registry.Event, error) {
	body, err := q.HistoryLast(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return event.Chain(registry.Event{})
	}
	if err != nil {
		return registry.Event{}, err
	}
	last, err := decodeEvent(body)
	if err != nil {
		return registry.Event{}, err
	}
	return event.Chain(last)
}

func appendEvent(ctx context.Context, q *dbsqlc.Queries, event registry.Event) error {
	body, err := registry.CanonicalJSON(event)
	if err != nil {
		return err
	}
	return q.HistoryAppend(ctx, dbsqlc.HistoryAppendParams{Seq: event.Seq, Body: string(body)})
}

// moveHead compares and swaps. The head is in place since the event that brought its
// release, so lifting a hold does not change that time.
func moveHead(ctx context.Context, q *dbsqlc.Queries, event registry.Event, move registry.HeadMove) error {
	if event.Release == "" {
		return registry.Errorf(registry.CodeInvalid, "head of %s in %s: the event names no release to move it to", event.Model, event.Environment)
	}
	have, err := q.HeadGet(ctx, dbsqlc.HeadGetParams{Environment: event.Environment, Model: event.Model})
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if have.Release != string(move.Expect) {
		return registry.Errorf(registry.CodeConflict, "head of %s in %s: is %q, expected %q: somebody else moved it first; look at it and try again", event.Model, event.Environment, have.Release, move.Expect)
	}
	since := event.Time.UnixMicro()
	if have.Release == string(event.Release) {
		since = have.Since
	}
	return q.HeadSet(ctx, dbsqlc.HeadSetParams{
		Environment: event.Environment, Model: event.Model,
		Release: string(event.Release), Version: event.Version,
		Since: since, Hold: move.Hold,
	})
}

func moveTag(ctx context.Context, q *dbsqlc.Queries, move registry.TagMove) error {
	have, err := q.TagGet(ctx, dbsqlc.TagGetParams{Repository: move.Repository, Tag: move.Tag})
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if move.Immutable && err == nil && have != string(move.Digest) {
		return registry.Errorf(registry.CodeConflict, "tag %s in %s: names %s and must not move to %s; choose a new version", move.Tag, move.Repository, have, move.Digest)
	}
	return q.TagSet(ctx, dbsqlc.TagSetParams{Repository: move.Repository, Tag: move.Tag, Digest: string(move.Digest)})
}
