// Package feed wakes the event streams of a service when the history has a new event, and limits how many each caller opens.
package feed

import (
	"context"
	"iter"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry/history"
)

// Feed tracks the number of the newest event. It learns of this process's events at once, and
// of events of other replicas within an interval. It queries the database once per interval for
// all callers.
type Feed struct {
	history  func(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error]
	interval time.Duration

	mu   sync.Mutex
	seq  int64
	read time.Time     // when seq was read
	wake chan struct{} // closed when there is a new event
}

// New returns the feed of a history. It asks the database at most once per interval.
func New(
	history func(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error],
	interval time.Duration,
) *Feed {
	return &Feed{history: history, interval: interval, wake: make(chan struct{})}
}

// Changed wakes all waiting callers.
func (f *Feed) Changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = time.Time{}
	close(f.wake)
	f.wake = make(chan struct{})
}

// Newest returns the number of the newest event, or 0 if there are no events.
func (f *Feed) Newest(ctx context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = time.Time{}
	return f.look(ctx)
}

// Current returns newest, at most an interval old.
func (f *Feed) Current(ctx context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.look(ctx)
}

// look queries the database if that is due. The caller holds the lock.
func (f *Feed) look(ctx context.Context) (int64, error) {
	if time.Since(f.read) < f.interval {
		return f.seq, nil
	}
	for e, err := range f.history(ctx, history.HistoryQuery{Descending: true, Limit: 1}) {
		if err != nil {
			return 0, err
		}
		f.seq = e.Seq
	}
	f.read = time.Now()
	return f.seq, nil
}

// Wait returns when an event after the number exists, when ctx ends, or after atMost. It
// reports whether there is such an event.
func (f *Feed) Wait(ctx context.Context, after int64, atMost time.Duration) (bool, error) {
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
