package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// MintSession gives a session an ID and a secret, and returns the text for the cookie of its bearer,
// ID.SECRET. The text is not stored. Errors: CodeInvalid for a session that is malformed.
func MintSession(s registry.Session) (registry.Session, string, error) {
	secret := random(secretBytes)
	s.ID, s.Hash = random(idBytes), sha256.Sum256([]byte(secret))
	if err := s.Validate(); err != nil {
		return registry.Session{}, "", err
	}
	return s, s.ID + "." + secret, nil
}

// RedeemSession returns the session for the text of a cookie. Errors: CodeUnauthenticated if it has ended
// or never was; others if it could not be looked up.
func RedeemSession(ctx context.Context, sessions registry.Sessions, text string, now time.Time) (registry.Session, error) {
	id, secret, ok := strings.Cut(text, ".")
	if _, err := encoding.DecodeString(id); !ok || err != nil || len(text) > 2*encoding.EncodedLen(idBytes+secretBytes) {
		return registry.Session{}, sessionEnded()
	}
	s, err := sessions.FindSession(ctx, id)
	if err != nil && !registry.HasCode(err, registry.CodeNotFound) {
		return registry.Session{}, err
	}
	// Hash even if the session does not exist, so that both cases take the same time.
	hash := sha256.Sum256([]byte(secret))
	if same := subtle.ConstantTimeCompare(hash[:], s.Hash[:]); same != 1 || err != nil || !now.Before(s.Expires) {
		return registry.Session{}, sessionEnded()
	}
	return s, nil
}

func sessionEnded() error {
	return registry.Errorf(registry.CodeUnauthenticated, "the session has ended: sign in again")
}
