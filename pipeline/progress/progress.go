// Package progress describes the steps of work that a person may wait for.
package progress

import (
	"context"
	"errors"
	"time"
)

// Step is a piece of work that a person may wait for.
type Step struct {
	Name    string // "quantize int8 for linux-amd64-v3"
	State   State
	Note    string        // moving and done: "cached", "9 of 9 cases"
	Details []string      // done: more, for those who want it
	Elapsed time.Duration // of a step that ended, and of one that goes on, where that is known
}

// State is where a step is.
type State int

// The states of a step.
const (
	Started State = iota
	Moving        // Note says how far it is
	Done
	Failed
	Interrupted // by a signal, or because another step failed
)

// EndState gives the state of a step that ended with err, which may be nil.
func EndState(err error) State {
	switch {
	case err == nil:
		return Done
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return Failed
}

// Ended reports whether a step in this state does no more work.
func (s State) Ended() bool { return s == Done || s == Failed || s == Interrupted }
