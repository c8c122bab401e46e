package serving

import (
	"runtime"
	"testing"
)

// The heap of a service is not collected before it has grown by the reserve and what belongs to it.
func TestHeapGrowsByTheReserve(t *testing.T) {
	t.Parallel()
	defer reserveHeap()()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if want := uint64(2 * heapReserve); stats.NextGC < want {
		t.Errorf("the heap is collected at %d bytes, want at least %d", stats.NextGC, want)
	}
}
