package sqlite

import (
	"context"
	"sync"

	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// together groups writes into shared commits. Writes that arrive while a commit is being synced
// share the next commit, because syncing takes most of the time. One caller commits for all
// that wait. It is for pushes, which are many at a time; changes of heads have their own
// transactions. Create one with [newTogether].
type together struct {
	turn    chan struct{} // holds one value while a caller commits
	mu      sync.Mutex    // guards waiting
	waiting []*write
}

// write is the change of one caller.
type write struct {
	change func(context.Context, *dbsqlc.Queries) error
	err    error         // valid after done is closed
	done   chan struct{} // closed when the change is durable or has failed
}

func newTogether() *together { return &together{turn: make(chan struct{}, 1)} }

// together makes change durable, perhaps in one transaction with changes of other callers.
// change may be called twice; the second call does not see effects of the first. It completes
// even if ctx ends first.
func (db *DB) together(ctx context.Context, change func(context.Context, *dbsqlc.Queries) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	mine := &write{change: change, done: make(chan struct{})}
	db.writes.mu.Lock()
	db.writes.waiting = append(db.writes.waiting, mine)
	db.writes.mu.Unlock()
	select {
	case <-mine.done:
	case db.writes.turn <- struct{}{}:
		// The end of one caller's ctx must not cancel the writes of others.
		db.commit(context.WithoutCancel(ctx), db.writes.take())
		<-db.writes.turn
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

// commit makes changes durable. If one of them fails, it runs each change again in its own
// transaction, because the others may depend on the failed one.
func (db *DB) commit(ctx context.Context, all []*write) {
	if len(all) == 0 {
		return
	}
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		for _, w := range all {
			if err := w.change(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	for _, w := range all {
		if w.err = err; err != nil && len(all) > 1 {
			w.err = db.transaction(ctx, func(q *dbsqlc.Queries) error { return w.change(ctx, q) })
		}
		close(w.done)
	}
}
