package serving

import (
	"time"

	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/storage"
)

// NewToken makes a token and its text, which is told once. Errors: those of [access.Mint].
func NewToken(name string, grants []storage.Grant, created, expires time.Time) (storage.Token, string, error) {
	return access.Mint(name, grants, created, expires)
}

// TokenUsable reports whether a token still authenticates its bearer.
func TokenUsable(t storage.Token, now time.Time) bool { return access.Usable(t, now) == nil }
