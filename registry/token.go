package registry

import (
	"context"
	"crypto/sha256"
	"regexp"
	"time"
)

// Token lets its bearer in as the principal "token:NAME". Of the secret that the bearer
// shows only the hash is kept.
type Token struct {
	ID      string            `json:"id"`   // public: stands in the token's text before the secret
	Name    string            `json:"name"` // no two tokens that are not revoked share one
	Hash    [sha256.Size]byte `json:"-"`    // of the secret
	Grants  []Grant           `json:"grants"`
	Created time.Time         `json:"created"`
	Expires time.Time         `json:"expires,omitzero"` // zero: never
	Revoked time.Time         `json:"revoked,omitzero"` // zero: not
	// LastUsed is when it last let somebody in, at most an hour or so too early. Zero: never.
	LastUsed time.Time `json:"lastUsed,omitzero"`
}

var (
	tokenName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$`)
	tokenID   = regexp.MustCompile(`^[a-z2-7]{16}$`)
)

// Validate refuses a token that could not be, would allow nothing, or would have expired
// before it was made. Errors: CodeInvalid.
func (t Token) Validate() error {
	switch {
	case !tokenName.MatchString(t.Name):
		return Errorf(CodeInvalid, "token %q: want a name of up to 64 lower-case letters, digits, '.', '_' and '-'", t.Name)
	case !tokenID.MatchString(t.ID):
		return Errorf(CodeInvalid, "token %s: id %q: want 16 of the letters a-z and digits 2-7", t.Name, t.ID)
	case t.Hash == [sha256.Size]byte{}:
		return Errorf(CodeInvalid, "token %s: no hash of its secret", t.Name)
	case len(t.Grants) == 0:
		return Errorf(CodeInvalid, "token %s: it would allow nothing", t.Name)
	case !t.Expires.IsZero() && !t.Expires.After(t.Created):
		return Errorf(CodeInvalid, "token %s: it would expire before it is made", t.Name)
	}
	for _, g := range t.Grants {
		if err := g.Validate(); err != nil {
			return Errorf(CodeInvalid, "token %s: %w", t.Name, err)
		}
	}
	return nil
}

// Tokens keeps tokens. None is ever forgotten, since the history names them. Times are
// kept in UTC to the microsecond. Implementations are safe for concurrent use, also by
// several processes; writes are durable on return.
type Tokens interface {
	// CreateToken keeps a token. Errors: CodeConflict when a token that is not revoked has
	// the name, or any has the ID; then nothing has changed.
	CreateToken(ctx context.Context, t Token) error
	// FindToken gives the token of an ID. Errors: CodeNotFound.
	FindToken(ctx context.Context, id string) (Token, error)
	// ListTokens lists all tokens, also those that expired or were revoked, by ID.
	ListTokens(ctx context.Context) ([]Token, error)
	// RevokeToken ends a token. One that was revoked before keeps that time. Errors: CodeNotFound.
	RevokeToken(ctx context.Context, id string, at time.Time) error
	// UseToken notes that a token was used. One that was used later keeps that time. Errors:
	// CodeNotFound.
	UseToken(ctx context.Context, id string, at time.Time) error
}

// Secrets is what the replicas of a service share, and nobody else may know.
type Secrets interface {
	// Secret gives the secret of a name. Where there is none yet, it becomes fresh: of
	// several that come at once one decides, and all get the same. Errors: CodeInvalid
	// when fresh is empty.
	Secret(ctx context.Context, name string, fresh []byte) ([]byte, error)
}
