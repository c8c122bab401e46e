package rounds_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"mlpromote.dev/mlpromote/registry/internal/rounds"
)

// All who call while a round runs share the next one.
func TestCallersShareARound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g rounds.Group[int]
		release := make(chan struct{})
		go func() {
			if got := g.Do(func() int { <-release; return 1 }); got != 1 {
				t.Errorf("the first round: got %d, want 1", got)
			}
		}()
		synctest.Wait()
		var runs atomic.Int64
		for range 10 {
			go func() {
				if got := g.Do(func() int { return 1 + int(runs.Add(1)) }); got != 2 {
					t.Errorf("the second round: got %d, want 2, not the result of one that began before", got)
				}
			}()
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
		if runs.Load() != 1 {
			t.Errorf("%d rounds for 10 callers, want 1", runs.Load())
		}
		if got := g.Do(func() int { return 7 }); got != 7 {
			t.Errorf("a later call: got %d, want 7 from a round of its own", got)
		}
	})
}

// What a caller gets was found after its call.
func TestResultsAreNew(t *testing.T) {
	t.Parallel()
	var g rounds.Group[int64]
	var state atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				before := state.Add(1)
				if got := g.Do(state.Load); got < before {
					t.Errorf("got state %d, want at least %d", got, before)
				}
			}
		})
	}
	all.Wait()
}

// A round that panics ends, and so do those that wait for it.
func TestPanicEndsARound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g rounds.Group[int]
		release, panicked := make(chan struct{}), make(chan any, 1)
		go g.Do(func() int { <-release; return 1 })
		synctest.Wait()
		go func() {
			defer func() { panicked <- recover() }()
			g.Do(func() int { panic("broken") })
		}()
		synctest.Wait()
		got := make(chan int, 1)
		go func() { got <- g.Do(func() int { return 2 }) }()
		synctest.Wait()
		close(release)
		if v := <-panicked; v != "broken" {
			t.Errorf("the caller whose work it was: panic %v, want broken", v)
		}
		if v := <-got; v != 0 {
			t.Errorf("the other caller: got %d, want 0", v)
		}
		if v := g.Do(func() int { return 3 }); v != 3 {
			t.Errorf("after that: got %d, want 3", v)
		}
	})
}
