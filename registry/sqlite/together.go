package sqlite

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// change writes rows. Its error undoes the transaction that it is in.
type change func(context.Context, *dbsqlc.Queries) error

// together groups writes into shared commits. Writes that arrive during a commit share the next
// one. One caller commits for all that wait. It is for pushes, which are many at a time; changes
// of heads have their own transactions. Create one with [newTogether].
type together struct {
	commit  func(context.Context, []change) error // all of them in one transaction
	turn    chan struct{}                         // holds one value while a caller commits
	mu      sync.Mutex                            // guards waiting
	waiting []*write
}

// write is the change of one caller.
type write struct {
	change change
	err    error         // valid after done is closed
	done   chan struct{} // closed when the change is committed or has failed
}

func newTogether(commit func(context.Context, []change) error) *together {
	return &together{commit: commit, turn: make(chan struct{}, 1)}
}

// do commits a change, perhaps in one transaction with changes of other callers. The change may
// be called twice; the second call does not see effects of the first. It completes even if ctx
// ends first.
func (t *together) do(ctx context.Context, c change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	mine := &write{change: c, done: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, mine)
	t.mu.Unlock()
	select {
	case <-mine.done:
	case t.turn <- struct{}{}:
		runtime.Gosched() // callers that are about to write come first, and share this commit
		// The end of one caller's ctx must not cancel the writes of others.
		t.finish(context.WithoutCancel(ctx), t.take())
		<-t.turn
		<-mine.done // by this commit or an earlier one
	}
	return mine.err
}

// take returns and removes all waiting writes.
func (t *together) take() []*write {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.waiting
	t.waiting = nil
	return all
}

// finish commits writes. If one of them fails, it commits each by itself, because the others
// may depend on the failed one.
func (t *together) finish(ctx context.Context, all []*write) {
	if len(all) == 0 {
		return
	}
	changes := make([]change, len(all))
	for i, w := range all {
		changes[i] = w.change
	}
	err := t.commit(ctx, changes)
	for i, w := range all {
		if w.err = err; err != nil && len(all) > 1 {
			w.err = t.commit(ctx, changes[i:i+1])
		}
		close(w.done)
	}
}

// synced makes changes durable in one transaction.
func (db *DB) synced(ctx context.Context, changes []change) error {
	return db.transaction(ctx, func(q *dbsqlc.Queries) error { return apply(ctx, q, changes) })
}

// unsynced makes changes in one transaction that does not wait for the disk. Every pushed blob
// has several of them, and a power failure may undo them. A later commit makes them durable. It
// holds the connection of the writer, so that changes of this process do not poll for the lock
// of the database.
func (db *DB) unsynced(ctx context.Context, changes []change) (err error) {
	turn, err := db.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.Close()) }()
	if len(changes) == 1 { // of one statement, which needs no BEGIN and COMMIT
		return changes[0](ctx, dbsqlc.New(db.hasty))
	}
	return within(ctx, db.hasty, func(q *dbsqlc.Queries) error { return apply(ctx, q, changes) })
}

func apply(ctx context.Context, q *dbsqlc.Queries, changes []change) error {
	for _, c := range changes {
		if err := c(ctx, q); err != nil {
			return err
		}
	}
	return nil
}
