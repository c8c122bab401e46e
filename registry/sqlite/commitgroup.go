package sqlite

import (
	"context"
	"runtime"
	"sync"

	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// change writes rows. Its error undoes the transaction that it is in.
type change func(context.Context, *dbsqlc.Queries) error

// commitGroup groups writes into shared commits. Writes that arrive during a commit share the next
// one, which waits for the disk if one of them must be durable. One caller commits for all that
// wait. It is for pushes, which are many at a time; changes of heads have their own transactions.
// Create one with [newCommitGroup].
type commitGroup struct {
	durable, hasty commit
	turn           chan struct{} // holds one value while a caller commits
	mu             sync.Mutex    // guards waiting
	waiting        []*write
}

// commit makes all changes in one transaction.
type commit func(context.Context, []change) error

// write is the change of one caller.
type write struct {
	change change
	hasty  bool
	err    error         // valid after done is closed
	done   chan struct{} // closed when the change is committed or has failed
}

func newCommitGroup(durable, hasty commit) *commitGroup {
	return &commitGroup{durable: durable, hasty: hasty, turn: make(chan struct{}, 1)}
}

// do commits a change durably, perhaps in one transaction with changes of other callers. The
// change may be called twice; the second call does not see effects of the first. It completes
// even if ctx ends first.
func (t *commitGroup) do(ctx context.Context, c change) error {
	return t.submit(ctx, &write{change: c, done: make(chan struct{})})
}

// doHastily is do, but a power failure may undo the change until a later durable one.
func (t *commitGroup) doHastily(ctx context.Context, c change) error {
	return t.submit(ctx, &write{change: c, hasty: true, done: make(chan struct{})})
}

// submit waits until a write is committed, by this caller or another.
func (t *commitGroup) submit(ctx context.Context, mine *write) error {
	if err := ctx.Err(); err != nil {
		return err
	}
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
func (t *commitGroup) take() []*write {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.waiting
	t.waiting = nil
	return all
}

// finish commits writes. If one of them fails, it commits each by itself, because the others
// may depend on the failed one.
func (t *commitGroup) finish(ctx context.Context, all []*write) {
	if len(all) == 0 {
		return
	}
	err := t.commit(ctx, all)
	for i, w := range all {
		if w.err = err; err != nil && len(all) > 1 {
			w.err = t.commit(ctx, all[i:i+1])
		}
		close(w.done)
	}
}

// commit commits writes in one transaction, without waiting for the disk if each is hasty.
func (t *commitGroup) commit(ctx context.Context, all []*write) error {
	changes, do := make([]change, len(all)), t.hasty
	for i, w := range all {
		changes[i] = w.change
		if !w.hasty {
			do = t.durable
		}
	}
	return do(ctx, changes)
}

func apply(ctx context.Context, q *dbsqlc.Queries, changes []change) error {
	for _, c := range changes {
		if err := c(ctx, q); err != nil {
			return err
		}
	}
	return nil
}
