package registrytest

import (
	"sync/atomic"
	"testing"
	"time"
)

// Clock is a clock of a catalog that stands still unless a test moves it. Make one with
// [NewClock].
type Clock struct{ micros atomic.Int64 }

// NewClock is a clock that shows some time of 2026.
func NewClock() *Clock {
	c := new(Clock)
	c.micros.Store(begin().UnixMicro())
	return c
}

// Now returns the time of the clock, in UTC to the microsecond.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.micros.Load()).UTC() }

// Pass moves the clock.
func (c *Clock) Pass(d time.Duration) { c.micros.Add(d.Microseconds()) }

// Clocked opens a store with a clock that a test can move.
type Clocked[T any] func(t *testing.T) (store T, pass func(time.Duration))
