package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// MintSession gives a session an ID and a secret, and returns the text for the cookie of its bearer,
// ID.SECRET. The text is not stored. Errors: CodeInvalid for a session that is malformed.
func MintSession(s storage.Session) (storage.Session, string, error) {
	secret := random(secretBytes)
	s.ID, s.Hash = random(idBytes), sha256.Sum256([]byte(secret))
	if err := s.Validate(); err != nil {
		return storage.Session{}, "", err
	}
	return s, s.ID + "." + secret, nil
}

// RedeemSession returns the session for the text of a cookie. Errors: CodeUnauthenticated if it has ended
// or never was; others if it could not be looked up.
func RedeemSession(ctx context.Context, sessions storage.Sessions, text string, now time.Time) (storage.Session, error) {
	id, secret, ok := strings.Cut(text, ".")
	if _, err := encoding.DecodeString(id); !ok || err != nil || len(text) > 2*encoding.EncodedLen(idBytes+secretBytes) {
		return storage.Session{}, sessionEnded()
	}
	s, err := sessions.FindSession(ctx, id)
	if err != nil && !registry.HasCode(err, registry.CodeNotFound) {
		return storage.Session{}, err
	}
	// Hash even if the session does not exist, so that both cases take the same time.
	hash := sha256.Sum256([]byte(secret))
	if same := subtle.ConstantTimeCompare(hash[:], s.Hash[:]); same != 1 || err != nil || !now.Before(s.Expires) {
		return storage.Session{}, sessionEnded()
	}
	return s, nil
}

func sessionEnded() error {
	return registry.Errorf(registry.CodeUnauthenticated, "the session has ended: sign in again")
}
