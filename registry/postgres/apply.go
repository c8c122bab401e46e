package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// Apply makes a change in one transaction. Where the answer to its commit was lost, it
// finds out whether the change was made. Errors: CodeUnavailable, with "may have been
// made or not", when it cannot find out for a while.
func (db *DB) Apply(ctx context.Context, c registry.Change) (registry.Event, error) {
	var event registry.Event
	err := db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) (err error) {
		event, err = apply(ctx, q, c)
		return err
	})
	var unknown *commitError
	if errors.As(err, &unknown) {
		err = db.settle(ctx, event, unknown)
	}
	if err != nil {
		return registry.Event{}, db.interpretError(fmt.Sprintf("%s %s in %s", c.Event.Kind, c.Event.Model, c.Event.Environment), err)
	}
	return event, nil
}

// apply holds the lock of the history from the beginning, so that what it reads of heads
// stays true until the commit: nobody else moves them.
func apply(ctx context.Context, q *dbsqlc.Queries, c registry.Change) (registry.Event, error) {
	if err := q.ChainLock(ctx); err != nil {
		return registry.Event{}, err
	}
	event, err := chain(ctx, q, c.Event)
	if err != nil {
		return registry.Event{}, err
	}
	if c.Move != nil {
		if err := moveHead(ctx, q, event, *c.Move); err != nil {
			return registry.Event{}, err
		}
	}
	for _, move := range c.Tags {
		if err := moveTag(ctx, q, move); err != nil {
			return registry.Event{}, err
		}
	}
	if c.EndIntent {
		if err := q.IntentEnd(ctx, dbsqlc.IntentEndParams{Environment: event.Environment, Model: event.Model}); err != nil {
			return registry.Event{}, err
		}
	}
	body, err := registry.CanonicalJSON(event)
	if err != nil {
		return registry.Event{}, err
	}
	return event, q.HistoryAppend(ctx, dbsqlc.HistoryAppendParams{Seq: event.Seq, Body: string(body)})
}

// chain gives event its place after the last one.
func chain(ctx context.Context, q *dbsqlc.Queries, event registry.Event) (registry.Event, error) {
	body, err := q.HistoryLast(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
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

// moveHead compares and swaps. The head is in place since the event that brought its
// release, so lifting a hold does not change that time.
func moveHead(ctx context.Context, q *dbsqlc.Queries, event registry.Event, move registry.HeadMove) error {
	if event.Release == "" {
		return registry.Errorf(registry.CodeInvalid, "head of %s in %s: the event names no release to move it to", event.Model, event.Environment)
	}
	have, err := q.HeadGet(ctx, dbsqlc.HeadGetParams{Environment: event.Environment, Model: event.Model})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if have.Release != string(move.Expect) {
		return registry.Errorf(registry.CodeConflict, "head of %s in %s: is %q, expected %q: somebody else moved it first; look at it and try again", event.Model, event.Environment, have.Release, move.Expect)
	}
	since := event.Time
	if have.Release == string(event.Release) {
		since = have.Since
	}
	return q.HeadSet(ctx, dbsqlc.HeadSetParams{
		Environment: event.Environment, Model: event.Model,
		Release: string(event.Release), Version: event.Version,
		Since: since, Hold: move.Hold,
	})
}

// moveTag sets a tag in one statement, since tags are also set outside of changes.
func moveTag(ctx context.Context, q *dbsqlc.Queries, move registry.TagMove) error {
	set, err := q.TagSet(ctx, dbsqlc.TagSetParams{
		Repository: move.Repository, Tag: move.Tag, Digest: string(move.Digest), Immutable: move.Immutable,
	})
	if err != nil || set > 0 {
		return err
	}
	have, err := q.TagGet(ctx, dbsqlc.TagGetParams{Repository: move.Repository, Tag: move.Tag})
	if err != nil {
		return err
	}
	return registry.Errorf(registry.CodeConflict, "tag %s in %s: names %s and must not move to %s; choose a new version", move.Tag, move.Repository, have, move.Digest)
}

// settlePause is how long a server is given between two questions about a commit.
const settlePause = 100 * time.Millisecond

// settle finds out whether event was committed. The transaction held the lock of the
// history until it ended, one way or the other; who holds the lock sees which.
func (db *DB) settle(ctx context.Context, event registry.Event, unknown *commitError) error {
	ctx, cancel := db.limit(context.WithoutCancel(ctx))
	defer cancel()
	for {
		made, err := db.made(ctx, event)
		switch {
		case made:
			return nil
		case err == nil:
			return registry.ForClients(
				registry.Errorf(registry.CodeUnavailable, "database %s was lost at the commit; nothing has changed; try again: %w", db.name, unknown.err),
				"the database was lost at the commit; nothing has changed; try again")
		}
		select {
		case <-ctx.Done():
			return unknown
		case <-time.After(settlePause):
		}
	}
}

// made reports whether event is in the history.
func (db *DB) made(ctx context.Context, event registry.Event) (made bool, err error) {
	err = db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		if err := q.ChainLock(ctx); err != nil {
			return err
		}
		body, err := q.HistoryGet(ctx, event.Seq)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		there, err := decodeEvent(body)
		made = there.Hash == event.Hash
		return err
	})
	return made, err
}
