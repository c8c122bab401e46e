package serving

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
)

// NewToken makes a token and its text, which is told once. Errors: those of [access.Mint].
func NewToken(name string, grants []registry.Grant, created, expires time.Time) (registry.Token, string, error) {
	return access.Mint(name, grants, created, expires)
}

// TokenUsable reports whether a token still authenticates its bearer.
func TokenUsable(t registry.Token, now time.Time) bool { return access.Usable(t, now) == nil }
