package sqlite

import (
	"context"
	"sync"

	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// together is the writes that wait for a commit. Those that come while a commit is being
// synced share the next one, since it is the sync that takes time. Whoever gets the turn
// commits for all that wait. It is for what clients push, many at a time; what moves heads
// has transactions of its own. Make one with [newTogether].
type together struct {
	turn    chan struct{} // holds one value while somebody commits
	mu      sync.Mutex    // guards waiting
	waiting []*write
}

// write is one caller's change.
type write struct {
	change func(context.Context, *dbsqlc.Queries) error
	err    error         // read it after done
	done   chan struct{} // closed when the change is durable, or has failed
}

func newTogether() *together { return &together{turn: make(chan struct{}, 1)} }

// together makes what change does durable, perhaps in one transaction with the changes of
// others. change may be called twice, the second time without an effect of the first. It
// runs to its end even if ctx ends first.
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
		// The end of one caller's patience must not end the writes of others.
		db.commit(context.WithoutCancel(ctx), db.writes.take())
		<-db.writes.turn
		<-mine.done // by this commit or by one before it
	}
	return mine.err
}

// take gives all that wait.
func (t *together) take() []*write {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.waiting
	t.waiting = nil
	return all
}

// commit makes changes durable. If one of them fails, nobody knows what the others would
// have done without it, so that each is made alone.
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
