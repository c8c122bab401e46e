package authn_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"mlpromote.dev/mlpromote/registry/access/authn"
)

// Whoever looks after something was made sees it, however many look at the same time.
func TestSharedLooksAreNew(t *testing.T) {
	t.Parallel()
	for range 200 {
		var made atomic.Bool
		look := authn.Shared(made.Load)
		if look() {
			t.Fatal("before it was made: got true, want false")
		}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				if i == 3 {
					made.Store(true)
				}
				wants := made.Load()
				if got := look(); wants && !got {
					t.Error("after it was made: got false, want true")
				}
			})
		}
		all.Wait()
	}
}
