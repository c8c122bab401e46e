// Package rates counts what callers do against how often they may.
package rates

import (
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rate is how often each caller may do something. The zero Rate is no limit.
type Rate struct {
	PerSecond float64
	Burst     int // at once; 0 means PerSecond, at least 1
}

// maxCallers bounds how many callers are remembered.
const maxCallers = 10_000

// Limiter counts for each caller. Nil lets everything pass. It is safe for concurrent use.
type Limiter struct {
	rate Rate

	mu      sync.Mutex
	callers map[string]*rate.Limiter
}

// New makes the limiter of a rate; nil for none.
func New(r Rate) *Limiter {
	if r.PerSecond <= 0 {
		return nil
	}
	if r.Burst <= 0 {
		r.Burst = max(1, int(math.Ceil(r.PerSecond)))
	}
	return &Limiter{rate: r, callers: make(map[string]*rate.Limiter)}
}

// Take counts once, if the caller may; else it gives how long he has to wait, and counts
// nothing.
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

// Wait is how long a caller would have to wait. It counts nothing, and remembers nobody.
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

// of gives the count of a caller. Where there are too many, those are forgotten who have
// all their turns left, and if that is nobody, anybody.
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

// Address is where a request comes from, without the port. Of IPv6 it is the network, all
// of which is one site's to choose from (RFC 6177).
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

// siteBits is the length of the prefix that a site has at least.
const siteBits = 64

// RetryAfter is the header that tells a caller to wait.
func RetryAfter(wait time.Duration) string {
	return strconv.FormatInt(int64(math.Ceil(wait.Seconds())), 10)
}
