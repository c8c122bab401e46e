package oidc

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4/jwt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// ClockSkew is the tolerated difference between the clocks of an issuer and this service.
const ClockSkew = 30 * time.Second

// Identifier authenticates callers by tokens of trusted issuers. It is safe for concurrent use.
type Identifier struct {
	issuers map[string]*trusted // by URL
}

// New returns an Identifier. It makes no requests. A nil clock means time.Now; a nil logger
// discards the failures of requests to issuers.
func New(c Config, now storage.Clock, logger *slog.Logger) *Identifier {
	if now == nil {
		now = time.Now
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	i := &Identifier{issuers: make(map[string]*trusted)}
	for _, issuer := range c.Issuers {
		base := &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: fetchTimeout, ResponseHeaderTimeout: fetchTimeout,
			TLSClientConfig: &tls.Config{RootCAs: issuer.Roots, MinVersion: tls.VersionTLS12},
		}
		i.issuers[issuer.URL] = &trusted{Issuer: issuer, now: now, keys: &keys{
			issuer: issuer.URL, client: &http.Client{Transport: base}, now: now,
			failed: func(ctx context.Context, err error) {
				logger.WarnContext(ctx, "fetching the keys of an issuer failed", "issuer", issuer.URL, "error", err)
			},
		}}
	}
	return i
}

// Claims returns the claims of a token, without asking whether a rule names its bearer. Errors: as Identify.
func (i *Identifier) Claims(ctx context.Context, token string) (map[string]json.RawMessage, error) {
	issuer, err := i.issuerOf(token)
	if err != nil {
		return nil, err
	}
	return issuer.verify(ctx, token)
}

// IssuerOf returns the issuer that a token names. The token is not verified. Errors: CodeUnauthenticated if it is not
// a token.
func IssuerOf(token string) (string, error) {
	parsed, err := jwt.ParseSigned(token, signatureAlgorithms())
	var named struct {
		Issuer string `json:"iss"`
	}
	if err == nil {
		err = parsed.UnsafeClaimsWithoutVerification(&named)
	}
	if err != nil {
		return "", registry.Errorf(registry.CodeUnauthenticated,
			"the token is not a JWT with an asymmetric signature of its issuer")
	}
	return named.Issuer, nil
}

// issuerOf returns the trusted issuer that a token names. The token is not verified yet.
func (i *Identifier) issuerOf(token string) (*trusted, error) {
	name, err := IssuerOf(token)
	if err != nil {
		return nil, err
	}
	issuer, ok := i.issuers[name]
	if !ok {
		return nil, registry.Errorf(registry.CodeUnauthenticated,
			"this service does not trust the issuer %.200q (access.yaml)", name)
	}
	return issuer, nil
}

// trusted is an Issuer with its keys.
type trusted struct {
	Issuer
	now       storage.Clock
	keys      *keys
	endpoints endpoints
}

// verify returns the claims of a valid token for this service. Errors: as Identify.
func (t *trusted) verify(ctx context.Context, token string) (claims, error) {
	return t.verifyFor(ctx, t.Audience, token)
}

// verifyFor returns the claims of a valid token for an audience. Errors: as Identify.
func (t *trusted) verifyFor(ctx context.Context, audience, token string) (claims, error) {
	noted := &noting{KeySet: t.keys}
	verifier := oidc.NewVerifier(t.URL, noted, &oidc.Config{
		ClientID: audience, SupportedSigningAlgs: algorithms(), SkipExpiryCheck: true, // checkTimes does it
	})
	verified, err := verifier.Verify(ctx, token)
	if noted.err != nil && !errors.Is(noted.err, errUnknownKey) {
		return nil, registry.Errorf(registry.CodeUnavailable, "the keys of %s cannot be fetched now: try again later", t.URL)
	}
	var c claims
	if err == nil {
		err = verified.Claims(&c)
	}
	if err == nil {
		err = t.checkTimes(c)
	}
	if err == nil {
		err = checkParty(c, audience)
	}
	if err != nil { // it names claims of the token, which its bearer has
		return nil, registry.Errorf(registry.CodeUnauthenticated, "the token of %s is refused: %w", t.URL, err)
	}
	return c, nil
}

// checkTimes refuses tokens that have expired, and tokens from the future. go-oidc would
// tolerate five minutes for nbf, and does not check iat.
func (t *trusted) checkTimes(c claims) error {
	var dates struct {
		Expiry    *jwt.NumericDate `json:"exp"`
		NotBefore *jwt.NumericDate `json:"nbf"`
		IssuedAt  *jwt.NumericDate `json:"iat"`
	}
	if err := c.decode(&dates); err != nil {
		return err
	}
	now := t.now()
	if dates.Expiry == nil {
		return errors.New("it has no exp: want a token that expires")
	}
	if end := dates.Expiry.Time(); !end.After(now.Add(-ClockSkew)) {
		return fmt.Errorf("it expired on %s", end.UTC().Format(time.DateTime))
	}
	for name, date := range map[string]*jwt.NumericDate{"nbf": dates.NotBefore, "iat": dates.IssuedAt} {
		if date != nil && date.Time().After(now.Add(ClockSkew)) {
			return fmt.Errorf("its %s is %s, but the time here is %s: clocks may differ by at most %v",
				name, date.Time().UTC().Format(time.DateTime), now.UTC().Format(time.DateTime), ClockSkew)
		}
	}
	return nil
}

// checkParty refuses a token for several audiences that was issued to another of them.
//
// Source: https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation, 3 to 5.
func checkParty(c claims, audience string) error {
	party, ok := c["azp"]
	if !ok || len(c.texts("aud")) < 2 || slices.Equal(c.texts("azp"), []string{audience}) {
		return nil
	}
	return fmt.Errorf("it is for several audiences and its azp is %.200s: want %q", party, audience)
}

// noting is a key set that keeps the error of its last use, whose cause go-oidc drops.
type noting struct {
	oidc.KeySet
	err error
}

// VerifySignature checks a signature.
func (n *noting) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := n.KeySet.VerifySignature(ctx, token)
	n.err = err
	return payload, err
}

// endpoints are the last that an issuer named, so that many who sign in at once do not each ask for them.
type endpoints struct {
	mu    sync.Mutex
	last  document
	since time.Time // when last was fetched; zero: never
}
