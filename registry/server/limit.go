package server

import (
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/ratelimit"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Rate limits the requests of each principal, or of each address if callers are anonymous. The
// zero Rate means no limit.
type Rate = ratelimit.Rate

// Limiter counts the requests of callers, of every part of a service that it is given to. A nil Limiter allows all.
type Limiter struct {
	rate  Rate
	now   storage.Clock
	inner *ratelimit.Limiter
}

// NewLimiter returns a limiter for a rate; nil for the zero Rate.
func NewLimiter(rate Rate, now storage.Clock) *Limiter {
	inner := ratelimit.New(rate)
	if inner == nil {
		return nil
	}
	return &Limiter{rate, now, inner}
}

// Wait counts a request and returns 0, or returns how long its caller must wait before the next one.
func (l *Limiter) Wait(r *http.Request) time.Duration {
	if l == nil {
		return 0
	}
	return l.inner.Take(callerOf(r), l.now())
}

// allow counts a request, or returns an error that says when to retry.
func allow(l *Limiter, r *http.Request) error {
	wait := l.Wait(r)
	if wait == 0 {
		return nil
	}
	return refusal{
		error: registry.Errorf(registry.CodeUnavailable, "more than %v requests a second: wait and try again",
			l.rate.PerSecond),
		status: http.StatusTooManyRequests,
		header: http.Header{"Retry-After": {ratelimit.RetryAfter(wait)}},
	}
}

// callerOf returns the principal, or the address that a request comes from.
func callerOf(r *http.Request) string {
	if p, ok := storage.PrincipalOf(r.Context()); ok && p.Name != "" {
		return "principal " + p.Name
	}
	return "address " + ratelimit.Address(r)
}
