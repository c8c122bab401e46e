package server

import (
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"mlpromote.dev/mlpromote/registry"
)

// Rate is how many requests each principal may send, or each address where nobody says
// who he is. The zero Rate is no limit.
type Rate struct {
	PerSecond float64
	Burst     int // at once; 0 means PerSecond, at least 1
}

// maxCallers bounds how many callers are remembered.
const maxCallers = 10_000

// limiter counts the requests of each caller. Nil lets everything pass.
type limiter struct {
	rate Rate

	mu      sync.Mutex
	callers map[string]*rate.Limiter
}

func newLimiter(r Rate) *limiter {
	if r.PerSecond <= 0 {
		return nil
	}
	if r.Burst <= 0 {
		r.Burst = max(1, int(math.Ceil(r.PerSecond)))
	}
	return &limiter{rate: r, callers: make(map[string]*rate.Limiter)}
}

// allow takes a request into account, or says when to come again.
func (l *limiter) allow(r *http.Request, now time.Time) error {
	if l == nil {
		return nil
	}
	reservation := l.of(callerOf(r), now).ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	reservation.CancelAt(now)
	return refusal{
		error:  registry.Errorf(registry.CodeUnavailable, "more than %v requests a second: wait and try again", l.rate.PerSecond),
		status: http.StatusTooManyRequests,
		header: http.Header{"Retry-After": {strconv.FormatInt(int64(math.Ceil(wait.Seconds())), 10)}},
	}
}

// of gives the count of a caller. Where there are too many, those are forgotten who have
// all their requests left, and if that is nobody, anybody.
func (l *limiter) of(caller string, now time.Time) *rate.Limiter {
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

// callerOf is a principal, or the address that a request comes from.
func callerOf(r *http.Request) string {
	if p, ok := registry.PrincipalOf(r.Context()); ok && p.Name != "" {
		return "principal " + p.Name
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return "address " + host
}
