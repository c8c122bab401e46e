package storage

import (
	"context"
	"sync"
)

// AtOneInstant returns a context for a short request that only reads. A catalog may answer reads
// with it as of one instant, which is not before this call. A later read never returns an older
// state than an earlier one.
func AtOneInstant(ctx context.Context) context.Context {
	return context.WithValue(ctx, instantKey{}, new(Instant))
}

// InstantOf returns the instant of ctx, or nil if each read needs the newest state.
func InstantOf(ctx context.Context) *Instant {
	i, _ := ctx.Value(instantKey{}).(*Instant)
	return i
}

type instantKey struct{}

// Instant is a state of a catalog, in the catalog's own terms. The zero Instant is not chosen yet.
type Instant struct {
	mu    sync.Mutex
	state any
	left  bool
}

// Leave notes that a read has another source than the catalog, such as a file, so that no state of the
// catalog says what it read.
func (i *Instant) Leave() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.left = true
}

// Left reports whether any read had another source than the catalog.
func (i *Instant) Left() bool {
	if i == nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.left
}

// Forget makes the next read choose again. A catalog calls it after a read whose result may be newer
// than the chosen state.
func (i *Instant) Forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state = nil
}

// State returns the chosen state, or nil if there is none. Equal states have the same content.
func (i *Instant) State() any {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.state
}

// Choose returns the state of an earlier call, or that of now, which it keeps if ok. It reports
// whether it called now.
func (i *Instant) Choose(now func() (state any, ok bool)) (state any, called, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.state != nil {
		return i.state, false, true
	}
	if state, ok = now(); ok {
		i.state = state
	}
	return state, true, ok
}
