package server

import (
	"context"
	"iter"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// feed knows the number of the newest event: at once where this process made it, and
// within an interval where another replica did. However many ask, the database is asked
// once in an interval.
type feed struct {
	history  func(ctx context.Context, q registry.HistoryQuery) iter.Seq2[registry.Event, error]
	interval time.Duration

	mu   sync.Mutex
	seq  int64
	read time.Time     // when seq was true
	wake chan struct{} // closed when there is something new
}

func newFeed(history func(ctx context.Context, q registry.HistoryQuery) iter.Seq2[registry.Event, error], interval time.Duration) *feed {
	return &feed{history: history, interval: interval, wake: make(chan struct{})}
}

// changed lets all who wait look again.
func (f *feed) changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = time.Time{}
	close(f.wake)
	f.wake = make(chan struct{})
}

// newest gives the number of the newest event, 0 before the first.
func (f *feed) newest(ctx context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = time.Time{}
	return f.look(ctx)
}

// current is newest as of an interval ago.
func (f *feed) current(ctx context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.look(ctx)
}

// look asks the database, if that is due. The lock is held.
func (f *feed) look(ctx context.Context) (int64, error) {
	if time.Since(f.read) < f.interval {
		return f.seq, nil
	}
	for e, err := range f.history(ctx, registry.HistoryQuery{Descending: true, Limit: 1}) {
		if err != nil {
			return 0, err
		}
		f.seq = e.Seq
	}
	f.read = time.Now()
	return f.seq, nil
}

// wait returns when there is an event behind a number, or ctx ends, or the time is over.
// It reports whether there is one.
func (f *feed) wait(ctx context.Context, after int64, atMost time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for {
		f.mu.Lock()
		wake := f.wake
		seq, err := f.look(ctx)
		f.mu.Unlock()
		if ctx.Err() != nil {
			return false, nil
		}
		if err != nil || seq > after {
			return err == nil, err
		}
		timer := time.NewTimer(f.interval)
		select {
		case <-wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return false, nil
		}
	}
}
