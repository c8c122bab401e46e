// Package ratelimit limits the rate of operations per caller.
package ratelimit

import (
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rate is how often each caller may do something. The zero Rate means no limit.
type Rate struct {
	PerSecond float64
	Burst     int // at once; 0 means PerSecond, at least 1
}

// maxCallers limits the number of remembered callers.
const maxCallers = 10_000

// Limiter counts operations per caller. A nil Limiter allows everything. It is safe for
// concurrent use.
type Limiter struct {
	rate Rate

	mu      sync.Mutex
	callers map[string]*rate.Limiter
}

// New returns a limiter for a rate, or nil for the zero Rate.
func New(r Rate) *Limiter {
	if r.PerSecond <= 0 {
		return nil
	}
	if r.Burst <= 0 {
		r.Burst = max(1, int(math.Ceil(r.PerSecond)))
	}
	return &Limiter{rate: r, callers: make(map[string]*rate.Limiter)}
}

// Take counts an operation if it is allowed. Otherwise it returns how long the caller must
// wait.
func (l *Limiter) Take(caller string, now time.Time) (wait time.Duration) {
	if l == nil {
		return 0
	}
	reservation := l.of(caller, now).ReserveN(now, 1)
	if wait = reservation.DelayFrom(now); wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// Wait returns how long a caller would have to wait. It does not count.
func (l *Limiter) Wait(caller string, now time.Time) time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	known, ok := l.callers[caller]
	l.mu.Unlock()
	if !ok {
		return 0
	}
	missing := max(0, 1-known.TokensAt(now))
	return time.Duration(missing / l.rate.PerSecond * float64(time.Second))
}

// of returns the limiter of a caller. If there are too many, it drops those with a full burst,
// or otherwise any.
func (l *Limiter) of(caller string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.callers[caller]; ok {
		return known
	}
	if len(l.callers) >= maxCallers {
		for other, count := range l.callers {
			if count.TokensAt(now) >= float64(l.rate.Burst) {
				delete(l.callers, other)
			}
		}
	}
	for other := range l.callers {
		if len(l.callers) < maxCallers {
			break
		}
		delete(l.callers, other)
	}
	l.callers[caller] = rate.NewLimiter(rate.Limit(l.rate.PerSecond), l.rate.Burst)
	return l.callers[caller]
}

// Address returns the address of a request without the port. For IPv6 it returns the network,
// because a site can choose any address in it (RFC 6177).
func Address(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address := from.Addr().Unmap().WithZone("")
	if address.Is4() {
		return address.String()
	}
	return netip.PrefixFrom(address, siteBits).Masked().String()
}

// siteBits is the minimum prefix length of a site.
const siteBits = 64

// RetryAfter returns the header value that tells a caller how long to wait.
func RetryAfter(wait time.Duration) string {
	return strconv.FormatInt(int64(math.Ceil(wait.Seconds())), 10)
}
