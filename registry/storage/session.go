package storage

import (
	"context"
	"crypto/sha256"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

const (
	// MaxSessions is how many sessions of one owner are stored.
	MaxSessions = 20
	// MaxClaims is the maximum size in bytes of the claims of a session.
	MaxClaims = 16 << 10
)

// Session is a browser in which somebody signed in, by a token of the service or at an issuer. What its
// bearer may do is decided for each request: by the token, or by the claims and the rules then in force.
type Session struct {
	ID      string            // public: precedes the secret in the cookie
	Hash    [sha256.Size]byte // of the secret, which is not stored
	Owner   string            // whose it is: "token ID" or "oidc ISSUER#SUBJECT"
	Token   string            // ID of the token; empty for an issuer
	Issuer  string            // URL of the issuer; empty for a token
	Claims  []byte            // JSON of the claims that the issuer signed; empty for a token
	Created time.Time
	Expires time.Time // never zero
}

// Validate refuses a session that is malformed. Errors: CodeInvalid.
func (s Session) Validate() error {
	switch {
	case !tokenID.MatchString(s.ID):
		return registry.Errorf(registry.CodeInvalid, "session %q: want an id of 16 of the letters a-z and digits 2-7", s.ID)
	case s.Hash == [sha256.Size]byte{}:
		return registry.Errorf(registry.CodeInvalid, "session %s: the hash of its secret is missing", s.ID)
	case s.Owner == "" || (s.Token == "") == (s.Issuer == ""):
		return registry.Errorf(registry.CodeInvalid, "session %s: want an owner, and a token or an issuer", s.ID)
	case (s.Issuer == "") != (len(s.Claims) == 0):
		return registry.Errorf(registry.CodeInvalid, "session %s: want claims of an issuer", s.ID)
	case len(s.Claims) > MaxClaims:
		return registry.Errorf(registry.CodeInvalid, "session %s: its claims have %d bytes: want at most %d", s.ID, len(s.Claims), MaxClaims)
	case !s.Expires.After(s.Created):
		return registry.Errorf(registry.CodeInvalid, "session %s: it would expire before its creation", s.ID)
	}
	return nil
}

// Sessions stores the sessions of people who signed in, for all replicas of a service. Times are in UTC
// and rounded to the microsecond. Implementations are safe for concurrent use, also by several
// processes. Writes are durable on return.
type Sessions interface {
	// CreateSession stores a session. It deletes sessions that expired before it was created, and the
	// oldest of its owner beyond [MaxSessions]. Errors: CodeConflict if a session has the ID.
	CreateSession(ctx context.Context, s Session) error
	// FindSession returns the session with an ID, also one that has expired. Errors: CodeNotFound.
	FindSession(ctx context.Context, id string) (Session, error)
	// EndSession deletes a session. It succeeds if there is none.
	EndSession(ctx context.Context, id string) error
	// EndSessions deletes all sessions of an owner and returns how many there were.
	EndSessions(ctx context.Context, owner string) (int, error)
}
