package jobtoken

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Source has a token of the job for one audience. Tokens of GitHub are valid for minutes and builds take hours, so it asks for
// another one when half of the time is over. While GitHub does not answer, it returns the token that is still valid. It is safe
// for concurrent use.
type Source struct {
	Audience string
	Getenv   func(name string) string
	Now      storage.Clock // nil means time.Now

	mu      sync.Mutex
	token   string
	until   time.Time // when to ask again
	expires time.Time // when the token does
}

const (
	patience = 5 * time.Second  // before GitHub is asked again, after it gave no answer
	leeway   = 30 * time.Second // before a token expires, in which it is not used: clocks differ
)

// Token is a token that is valid now. Errors: as [GitHub].
func (s *Source) Token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	if s.token != "" && now().Before(s.until) {
		return s.token, nil
	}
	token, err := GitHub(ctx, s.Getenv, s.Audience)
	if registry.ExitCode(err) == registry.ExitAgain && ctx.Err() == nil && now().Before(s.expires.Add(-leeway)) {
		s.until = now().Add(patience)
		return s.token, nil
	}
	if err != nil {
		return "", err
	}
	expiry, ok := expiryOf(token)
	if !ok {
		return "", registry.Lastingf(registry.CodeUnavailable, "GitHub answered with a token that is no JWT")
	}
	s.token, s.until, s.expires = token, now().Add(expiry.Sub(now())/2), expiry
	return token, nil
}

// expiryOf reads when a token (JWT, RFC 7519) expires, without verifying it: whoever gets it does.
func expiryOf(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Expiry float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return time.Time{}, false
	}
	return time.Unix(int64(claims.Expiry), 0), true
}
