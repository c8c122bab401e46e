// Package rounds does work once for all callers that want it at the same time.
package rounds

import (
	"runtime"
	"sync"
)

// Group runs work in rounds, one after the other. The zero Group is ready. It is safe for concurrent
// use.
type Group[T any] struct {
	mu   sync.Mutex
	next *round[T] // has not begun; nil if nobody wants one
	last *round[T] // the one before next, or next
}

type round[T any] struct {
	ended  chan struct{}
	result T
}

// Do returns the result of work that began after this call, here or for another caller: all who call
// before it begins share it. If work panics, the others get a zero result.
func (g *Group[T]) Do(work func() T) T {
	g.mu.Lock()
	if r := g.next; r != nil {
		g.mu.Unlock()
		<-r.ended
		return r.result
	}
	r, before := &round[T]{ended: make(chan struct{})}, g.last
	g.next, g.last = r, r
	g.mu.Unlock()
	defer close(r.ended)
	runtime.Gosched() // whoever is about to call comes first
	if before != nil {
		<-before.ended
	}
	g.mu.Lock()
	g.next = nil
	g.mu.Unlock()
	r.result = work()
	return r.result
}
