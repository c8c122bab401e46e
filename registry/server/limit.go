package server

import (
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/ratelimit"
)

// Rate limits the requests of each principal, or of each address if callers are anonymous. The
// zero Rate means no limit.
type Rate = ratelimit.Rate

// allow counts a request, or returns an error that says when to retry.
func (s server) allow(r *http.Request, now time.Time) error {
	if s.limiter == nil {
		return nil
	}
	wait := s.limiter.Take(callerOf(r), now)
	if wait == 0 {
		return nil
	}
	return refusal{
		error: registry.Errorf(registry.CodeUnavailable, "more than %v requests a second: wait and try again",
			s.Rate.PerSecond),
		status: http.StatusTooManyRequests,
		header: http.Header{"Retry-After": {ratelimit.RetryAfter(wait)}},
	}
}

// callerOf returns the principal, or the address that a request comes from.
func callerOf(r *http.Request) string {
	if p, ok := registry.PrincipalOf(r.Context()); ok && p.Name != "" {
		return "principal " + p.Name
	}
	return "address " + ratelimit.Address(r)
}
