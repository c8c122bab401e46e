package storage

import (
	"context"
	"crypto/sha256"
	"regexp"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Token authenticates its bearer as the principal "token:NAME". Only the hash of its secret is
// stored.
type Token struct {
	ID      string            `json:"id"`   // public: precedes the secret in the token's text
	Name    string            `json:"name"` // unique among tokens that are not revoked
	Hash    [sha256.Size]byte `json:"-"`    // of the secret
	Grants  []Grant           `json:"grants"`
	Created time.Time         `json:"created"`
	Expires time.Time         `json:"expires,omitzero"` // zero: never
	Revoked time.Time         `json:"revoked,omitzero"` // zero: not revoked
	// LastUsed is when the token last authenticated a caller. It can be up to about an hour old.
	// Zero: never.
	LastUsed time.Time `json:"lastUsed,omitzero"`
}

var (
	tokenName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$`)
	tokenID   = regexp.MustCompile(`^[a-z2-7]{16}$`)
)

// Validate refuses a token that is malformed, has no permissions, or expires before its
// creation. Errors: CodeInvalid.
func (t Token) Validate() error {
	switch {
	case !tokenName.MatchString(t.Name):
		return registry.Errorf(registry.CodeInvalid, "token %q: want a name of up to 64 lower-case letters, digits, '.', '_' and '-'", t.Name)
	case !tokenID.MatchString(t.ID):
		return registry.Errorf(registry.CodeInvalid, "token %s: id %q: want 16 of the letters a-z and digits 2-7", t.Name, t.ID)
	case t.Hash == [sha256.Size]byte{}:
		return registry.Errorf(registry.CodeInvalid, "token %s: the hash of its secret is missing", t.Name)
	case len(t.Grants) == 0:
		return registry.Errorf(registry.CodeInvalid, "token %s: it has no grants: want at least one", t.Name)
	case !t.Expires.IsZero() && !t.Expires.After(t.Created):
		return registry.Errorf(registry.CodeInvalid, "token %s: it would expire before its creation: want a later expiry", t.Name)
	}
	for _, g := range t.Grants {
		if err := g.Validate(); err != nil {
			return registry.Errorf(registry.CodeInvalid, "token %s: %w", t.Name, err)
		}
	}
	return nil
}

// Tokens stores tokens. It never deletes them, because the history names them. Times are in UTC
// and rounded to the microsecond. Implementations are safe for concurrent use, also by several
// processes. Writes are durable on return.
type Tokens interface {
	// CreateToken stores a token. Errors: CodeConflict, with no change, if a token that is not
	// revoked has the name or any token has the ID.
	CreateToken(ctx context.Context, t Token) error
	// FindToken returns the token with an ID. Errors: CodeNotFound.
	FindToken(ctx context.Context, id string) (Token, error)
	// ListTokens lists all tokens by ID, including expired and revoked ones.
	ListTokens(ctx context.Context) ([]Token, error)
	// RevokeToken revokes a token. A token that is already revoked keeps its time. Errors:
	// CodeNotFound.
	RevokeToken(ctx context.Context, id string, at time.Time) error
	// UseToken records the time of a use, unless a later use is recorded. Errors: CodeNotFound.
	UseToken(ctx context.Context, id string, at time.Time) error
}

// Secrets stores the secrets that the replicas of a service share.
type Secrets interface {
	// Secret returns the secret with the name. If it does not exist yet, fresh becomes the secret.
	// If several callers do this at once, one of them wins and all get the same secret. Errors:
	// CodeInvalid if fresh is empty.
	Secret(ctx context.Context, name string, fresh []byte) ([]byte, error)
}
