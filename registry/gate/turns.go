package gate

import (
	"context"
	"sync"
)

// turns lets each caller do one thing at a time, and some callers at the same time. So a caller with many
// requests does not make the others wait for all of them.
type turns struct {
	all chan struct{}
	mu  sync.Mutex
	own map[string]*turn // of callers that work or wait
}

// turn belongs to one caller.
type turn struct {
	taken chan struct{}
	users int // that have or wait for it
}

func newTurns(atOnce int) *turns {
	return &turns{all: make(chan struct{}, atOnce), own: make(map[string]*turn)}
}

// take waits for the turn of a caller. Call done at the end of the work. Errors: the cause of ctx.
func (t *turns) take(ctx context.Context, caller string) (done func(), err error) {
	own := t.join(caller)
	if err := enter(ctx, own.taken); err != nil {
		t.leave(caller, own)
		return nil, err
	}
	if err := enter(ctx, t.all); err != nil {
		<-own.taken
		t.leave(caller, own)
		return nil, err
	}
	return func() {
		<-t.all
		<-own.taken
		t.leave(caller, own)
	}, nil
}

func enter(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *turns) join(caller string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.own[caller]
	if own == nil {
		own = &turn{taken: make(chan struct{}, 1)}
		t.own[caller] = own
	}
	own.users++
	return own
}

func (t *turns) leave(caller string, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(t.own, caller)
	}
}
