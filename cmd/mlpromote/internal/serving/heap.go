package serving

import (
	"runtime"
	"runtime/debug"
)

// serveGCPercent collects the heap of a service more often than that of other verbs: it lives
// long, and what its callers send must not make it large.
const serveGCPercent = 100

// heapReserve is how many bytes a heap may grow by in addition to serveGCPercent before it is
// collected. Without it, a service with a few MiB of heap collects dozens of times a second under load.
const heapReserve = 16 << 20

// reserveHeap sets when the heap is collected, until the returned function is called. The collector counts
// a block that is never touched, so that the system gives no memory for it. Call it early: pages that
// were used before would be cleared, which touches them.
func reserveHeap() (end func()) {
	before := debug.SetGCPercent(serveGCPercent)
	reserve := make([]byte, heapReserve)
	return func() {
		runtime.KeepAlive(reserve)
		debug.SetGCPercent(before)
	}
}
