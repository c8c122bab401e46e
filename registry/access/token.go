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
)

// tokenPrefix begins the text of every token, so that scanners of leaked secrets and
// people know one when they see it.
const tokenPrefix = "mlp_"

const (
	idBytes     = 10
	secretBytes = 32
)

// encoding has letters and digits alone, so that a double click marks a whole token.
var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Mint makes a token and the text that its bearer shows, mlp_ID_SECRET. The text is kept
// nowhere. A zero expires means never. Errors: CodeInvalid, for a name or grant that
// cannot be, or a token that is expired when it is made.
func Mint(name string, grants []registry.Grant, created, expires time.Time) (registry.Token, string, error) {
	id, secret := random(idBytes), random(secretBytes)
	t := registry.Token{
		ID: id, Name: name, Hash: sha256.Sum256([]byte(secret)), Grants: grants, Created: created, Expires: expires,
	}
	if err := t.Validate(); err != nil {
		return registry.Token{}, "", err
	}
	return t, tokenPrefix + id + "_" + secret, nil
}

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return encoding.EncodeToString(b)
}

// IsToken reports whether a text is meant as one that [Mint] made.
func IsToken(text string) bool { return strings.HasPrefix(text, tokenPrefix) }

// Redeem gives the token whose text was shown. Errors: CodeUnauthenticated when there is
// none, or it cannot be used any more; others when that could not be found out.
func Redeem(ctx context.Context, tokens registry.Tokens, text string, now time.Time) (registry.Token, error) {
	id, secret, ok := strings.Cut(strings.TrimPrefix(text, tokenPrefix), "_")
	if _, err := encoding.DecodeString(id); !ok || !IsToken(text) || err != nil {
		return registry.Token{}, unknownToken()
	}
	t, err := tokens.FindToken(ctx, id)
	if err != nil && !registry.HasCode(err, registry.CodeNotFound) {
		return registry.Token{}, err
	}
	// Also where there is no such token, so that both take as long.
	hash := sha256.Sum256([]byte(secret))
	if same := subtle.ConstantTimeCompare(hash[:], t.Hash[:]); same != 1 || err != nil {
		return registry.Token{}, unknownToken()
	}
	if err := Usable(t, now); err != nil {
		return registry.Token{}, err
	}
	return t, nil
}

func unknownToken() error {
	return registry.Errorf(registry.CodeUnauthenticated, "the token that was sent is not one of this service's")
}

// Usable refuses a token that expired or was revoked. Errors: CodeUnauthenticated.
func Usable(t registry.Token, now time.Time) error {
	switch {
	case !t.Revoked.IsZero():
		return registry.Errorf(registry.CodeUnauthenticated, "token %s was revoked on %s", t.Name, t.Revoked.UTC().Format(time.DateTime))
	case !t.Expires.IsZero() && !now.Before(t.Expires):
		return registry.Errorf(registry.CodeUnauthenticated, "token %s expired on %s", t.Name, t.Expires.UTC().Format(time.DateTime))
	}
	return nil
}

// Bearer is the principal that a token lets in.
func Bearer(t registry.Token) registry.Principal {
	return registry.Principal{Name: "token:" + t.Name, Grants: t.Grants}
}
