package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
)

// tokenPrefix is the prefix of every token, so that secret scanners and people recognize one.
const tokenPrefix = "mlp_"

const (
	idBytes     = 10
	secretBytes = 32
)

// encoding uses only letters and digits, so that a double click selects a whole token.
var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Mint makes a token and the text that its bearer sends, mlp_ID_SECRET. The text is not stored.
// A zero expires means never. Errors: CodeInvalid for an invalid name or grant, or an expiry
// before created.
func Mint(name string, grants []storage.Grant, created, expires time.Time) (storage.Token, string, error) {
	id, secret := random(idBytes), random(secretBytes)
	t := storage.Token{
		ID: id, Name: name, Hash: sha256.Sum256([]byte(secret)), Grants: grants, Created: created, Expires: expires,
	}
	if err := t.Validate(); err != nil {
		return storage.Token{}, "", err
	}
	return t, tokenPrefix + id + "_" + secret, nil
}

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return encoding.EncodeToString(b)
}

// IsToken reports whether a text has the form of a token of [Mint].
func IsToken(text string) bool { return strings.HasPrefix(text, tokenPrefix) }

// Redeem returns the token for a text. Errors: CodeUnauthenticated if it does not exist or is
// no longer valid; others if it could not be looked up.
func Redeem(ctx context.Context, tokens storage.Tokens, text string, now time.Time) (storage.Token, error) {
	id, secret, ok := strings.Cut(strings.TrimPrefix(text, tokenPrefix), "_")
	if _, err := encoding.DecodeString(id); !ok || !IsToken(text) || err != nil {
		return storage.Token{}, unknownToken()
	}
	t, err := tokens.FindToken(ctx, id)
	if err != nil && !registry.HasCode(err, registry.CodeNotFound) {
		return storage.Token{}, err
	}
	// Hash even if the token does not exist, so that both cases take the same time.
	hash := sha256.Sum256([]byte(secret))
	if same := subtle.ConstantTimeCompare(hash[:], t.Hash[:]); same != 1 || err != nil {
		return storage.Token{}, unknownToken()
	}
	if err := Usable(t, now); err != nil {
		return storage.Token{}, err
	}
	return t, nil
}

func unknownToken() error {
	return registry.Errorf(registry.CodeUnauthenticated, "this service did not issue the token")
}

// Usable refuses a token that expired or was revoked. Errors: CodeUnauthenticated.
func Usable(t storage.Token, now time.Time) error {
	switch {
	case !t.Revoked.IsZero():
		return registry.Errorf(registry.CodeUnauthenticated,
			"token %s was revoked on %s", t.Name, t.Revoked.UTC().Format(time.DateTime))
	case !t.Expires.IsZero() && !now.Before(t.Expires):
		return registry.Errorf(registry.CodeUnauthenticated,
			"token %s expired on %s", t.Name, t.Expires.UTC().Format(time.DateTime))
	}
	return nil
}

// Bearer returns the principal of a token's bearer.
func Bearer(t storage.Token) storage.Principal {
	name := "token:" + t.Name
	return storage.Principal{Name: name, Grants: t.Grants, Person: evidence.Person{Principal: name, Token: t.Name}}
}
