package oidc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"mlpromote.dev/mlpromote/registry"
)

const (
	// KeysMaxAge is how long the keys of an issuer are believed without asking it again.
	KeysMaxAge = time.Hour
	// ClockSkew is how long after its end a token is still taken.
	ClockSkew = 30 * time.Second
)

// algorithms are those of tokens that are taken: what only the issuer can sign. One whose
// key the service would have to share, or none, is not among them.
func algorithms() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}
}

// Identifier knows who is let in by the token of an issuer. It is safe for concurrent use.
type Identifier struct {
	issuers map[string]*trusted // by URL
}

// New makes an Identifier. It asks nobody. A nil clock means time.Now; a nil logger
// discards why an issuer could not be asked.
func New(c Config, now registry.Clock, logger *slog.Logger) *Identifier {
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
		i.issuers[issuer.URL] = &trusted{Issuer: issuer, now: now, logger: logger, client: &http.Client{
			Timeout: fetchTimeout, Transport: &fetcher{base: base, now: now, kept: make(map[string]answer)},
		}}
	}
	return i
}

// Identify gives who is let in by a token. Errors: CodeUnauthenticated when nobody is;
// CodeUnavailable when its issuer could not be asked for the keys that it is checked with.
func (i *Identifier) Identify(ctx context.Context, token string) (registry.Principal, error) {
	issuer, err := i.issuerOf(token)
	if err != nil {
		return registry.Principal{}, err
	}
	claims, err := issuer.verify(ctx, token)
	if err != nil {
		return registry.Principal{}, err
	}
	return issuer.principal(claims)
}

// issuerOf is the issuer that a token names. Nothing is believed for that.
func (i *Identifier) issuerOf(token string) (*trusted, error) {
	var algs []jose.SignatureAlgorithm
	for _, a := range algorithms() {
		algs = append(algs, jose.SignatureAlgorithm(a))
	}
	parsed, err := jwt.ParseSigned(token, algs)
	var named struct {
		Issuer string `json:"iss"`
	}
	if err == nil {
		err = parsed.UnsafeClaimsWithoutVerification(&named)
	}
	if err != nil {
		return nil, registry.Errorf(registry.CodeUnauthenticated, "the token that was sent is no JWT that is signed by an issuer's own key")
	}
	issuer, ok := i.issuers[named.Issuer]
	if !ok {
		return nil, registry.Errorf(registry.CodeUnauthenticated, "this service does not trust the issuer %.200q (access.yaml)", named.Issuer)
	}
	return issuer, nil
}

// trusted is an Issuer with its keys.
type trusted struct {
	Issuer
	now    registry.Clock
	logger *slog.Logger
	client *http.Client

	mu    sync.Mutex
	keys  oidc.KeySet // nil: not asked yet
	since time.Time   // when it was asked
}

// verify gives the claims of a token. Errors: as Identify.
func (t *trusted) verify(ctx context.Context, token string) (claims, error) {
	keys, err := t.keySet(ctx)
	if err != nil {
		return nil, t.unavailable(ctx, err)
	}
	noted := &noting{KeySet: keys}
	verifier := oidc.NewVerifier(t.URL, noted, &oidc.Config{
		ClientID: t.Audience, SupportedSigningAlgs: algorithms(), Now: func() time.Time { return t.now().Add(-ClockSkew) },
	})
	verified, err := verifier.Verify(ctx, token)
	if errors.Is(noted.err, errNoAnswer) {
		return nil, t.unavailable(ctx, noted.err)
	}
	var expired *oidc.TokenExpiredError
	if errors.As(err, &expired) {
		return nil, registry.Errorf(registry.CodeUnauthenticated, "the token of %s expired on %s", t.URL, expired.Expiry.UTC().Format(time.DateTime))
	}
	var c claims
	if err == nil {
		err = verified.Claims(&c)
	}
	if err != nil { // it names claims of the token, which its bearer has
		return nil, registry.Errorf(registry.CodeUnauthenticated, "the token of %s is not taken: %w", t.URL, err)
	}
	return c, nil
}

// unavailable tells the log why an issuer could not be asked, and the caller that.
func (t *trusted) unavailable(ctx context.Context, err error) error {
	t.logger.WarnContext(ctx, "an issuer could not be asked for its keys", "issuer", t.URL, "error", err)
	return registry.Errorf(registry.CodeUnavailable, "the keys of %s cannot be had now: try again later", t.URL)
}

// keySet is the issuer's keys, for which it is asked where they are not known or old.
func (t *trusted) keySet(ctx context.Context) (oidc.KeySet, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if age := t.now().Sub(t.since); t.keys != nil && age >= 0 && age < KeysMaxAge {
		return t.keys, nil
	}
	// Others wait for the same answer: who asked first must not take it away by leaving.
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), t.client)
	provider, err := oidc.NewProvider(ctx, t.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if u, err := url.Parse(document.Keys); err != nil || (u.Scheme != "https" && !plainLoopback(u)) {
		return nil, fmt.Errorf("%w: its jwks_uri %q is no https URL", errNoAnswer, document.Keys)
	}
	t.keys, t.since = oidc.NewRemoteKeySet(ctx, document.Keys), t.now()
	return t.keys, nil
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
