package registrytest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// TestLeases is the contract of [registry.Leases].
func TestLeases(t *testing.T, open func(t *testing.T) registry.Leases) {
	t.Run("one holder at a time", func(t *testing.T) {
		t.Parallel()
		leases := open(t)
		for _, step := range []struct {
			name, holder string
			now          time.Duration
			want         bool
		}{
			{"a", "one", 0, true}, {"a", "two", 0, false}, {"b", "two", 0, true},
			{"a", "two", time.Hour - 1, false}, {"a", "one", time.Minute, true}, // until an hour and a minute
			{"a", "two", time.Hour, false}, {"a", "two", time.Hour + time.Minute, true}, {"a", "one", time.Hour + time.Minute, false},
		} {
			now := dusk().Add(step.now)
			got, err := leases.AcquireLease(t.Context(), step.name, step.holder, now, now.Add(time.Hour))
			must(t, err)
			if got != step.want {
				t.Errorf("%+v: got %v", step, got)
			}
		}
		must(t, leases.ReleaseLease(t.Context(), "a", "one")) // which is not its
		got, err := leases.AcquireLease(t.Context(), "a", "one", dusk(), dusk())
		must(t, err)
		wantEqual(t, got, false)
		must(t, leases.ReleaseLease(t.Context(), "a", "two"))
		got, err = leases.AcquireLease(t.Context(), "a", "one", dusk(), dusk())
		must(t, err)
		wantEqual(t, got, true)
	})
	t.Run("one of many wins", func(t *testing.T) {
		t.Parallel()
		leases := open(t)
		var wg sync.WaitGroup
		var winners atomic.Int32
		for i := range 8 {
			wg.Go(func() {
				got, err := leases.AcquireLease(t.Context(), "a", fmt.Sprint(i), dusk(), dusk().Add(time.Hour))
				if err != nil {
					t.Error(err)
				}
				if got {
					winners.Add(1)
				}
			})
		}
		wg.Wait()
		wantEqual(t, winners.Load(), int32(1))
	})
}
