package service_test

import (
	"context"
	"fmt"
	"runtime"
)

// strand is an operation at work in an arena. It goes from one call of a port to the next
// and waits before each until the scheduler lets it go on, so that only one strand at a time
// is doing anything.
type strand struct {
	arena        *arena
	id           int
	pending      *step // what it does next; nil: it has ended
	resume       chan struct{}
	depth        int    // of calls of ports within calls of ports
	touched      access // of the step that it is in
	killed       bool
	begun, ended int // the numbers of its first and last step in the schedule
}

// step is a call of a port.
type step struct {
	name  string
	ready func() bool // whether it can be made now; nil: always
}

type strandKey struct{}

// strandOf gives the strand that ctx belongs to; nil outside of a schedule.
func strandOf(ctx context.Context) *strand {
	s, _ := ctx.Value(strandKey{}).(*strand)
	return s
}

// step makes a call of a port. Whatever that calls in turn is part of it.
func (s *strand) step(name string, do func()) { s.stepWhen(name, nil, do) }

// stepWhen makes a call that would wait for others until ready.
func (s *strand) stepWhen(name string, ready func() bool, do func()) {
	if s == nil || s.depth > 0 {
		do()
		return
	}
	if s.killed {
		runtime.Goexit()
	}
	s.pending = &step{name, ready}
	s.arena.parked <- s
	<-s.resume
	if s.killed {
		runtime.Goexit()
	}
	s.arena.schedule = append(s.arena.schedule, fmt.Sprintf("%d %s", s.id, name))
	s.depth++
	do()
	s.depth--
}

// unseen does what makes no difference to others, in whatever order they do the same.
func (s *strand) unseen(do func()) {
	if s == nil {
		do()
		return
	}
	s.depth++
	touched := s.touched
	s.touched = newAccess()
	do()
	s.touched = touched
	s.depth--
}

// begin starts an operation and returns when it waits before its first step.
func (a *arena) begin(ctx context.Context, do func(ctx context.Context)) *strand {
	s := &strand{arena: a, id: len(a.strands), resume: make(chan struct{}), begun: -1}
	a.strands = append(a.strands, s)
	a.alive.Go(func() {
		defer func() {
			s.pending = nil
			if !s.killed {
				a.parked <- s
			}
		}()
		do(context.WithValue(ctx, strandKey{}, s))
	})
	<-a.parked
	return s
}

// ready reports whether a strand can make a step now.
func (s *strand) ready() bool {
	return s.pending != nil && (s.pending.ready == nil || s.pending.ready())
}

// advance lets a strand make one step, and gives what that touched.
func (a *arena) advance(s *strand) access {
	if s.begun < 0 {
		s.begun = a.clock
	}
	s.ended = a.clock
	a.clock++
	s.touched = newAccess()
	s.resume <- struct{}{}
	<-a.parked
	return s.touched
}

// stop ends what is still at work.
func (a *arena) stop() {
	for _, s := range a.strands {
		if s.pending != nil {
			s.killed = true
			s.resume <- struct{}{}
		}
	}
	a.alive.Wait()
}
