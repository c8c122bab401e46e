package authn

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/storage"
)

// usesPatience is how long a request waits until the use of its token is written.
const usesPatience = time.Second

// Config configures a Authenticator. Tokens and Secrets are required.
type Config struct {
	Tokens  storage.Tokens
	Secrets storage.Secrets
	// Identify returns the principal of a JWT of another issuer. Errors: CodeUnauthenticated for
	// an invalid token; CodeUnavailable if the issuer does not answer. Nil means that no issuer is
	// trusted.
	Identify func(ctx context.Context, jwt string) (storage.Principal, error)
	// Sessions has the sessions of people who use a browser. Nil means that there are none.
	Sessions storage.Sessions
	// ByClaims returns the principal whose claims an issuer signed when a session was opened, by the
	// rules of now. Errors: CodeUnauthenticated if no rule lets them in. Nil means that no issuer is trusted.
	ByClaims func(ctx context.Context, issuer string, claims []byte) (storage.Principal, error)
	// Rules identifies the rules that Identify applies. If they change, earlier tokens of OCI
	// clients are refused. Nil means that they never change.
	Rules func() string
	// Open says whether callers need no token. Nil means that a token is always required.
	Open *access.Open
	// URL is the service as clients reach it, "https://registry.example.com". Empty means the URL
	// of the current request.
	URL string
	// Failures limits the invalid credentials per address before it must wait. Clients that
	// recently authenticated need not wait. The zero Rate means no limit.
	Failures Rate
	Now      storage.Clock // nil means time.Now
	Logger   *slog.Logger  // nil discards
}

// Authenticator authenticates requests. It is safe for concurrent use.
type Authenticator struct {
	Config
	key      []byte // signs the tokens of OCI clients
	failures *failures
	uses     uses
	closing  sync.Once // log only once that open access has ended
}

// keyName is the name of the key in the database.
const keyName = "oci-token-key"

// New reads the key that the replicas of the service share, or creates it. Errors: CodeInvalid
// if a required field is missing or URL is invalid.
func New(ctx context.Context, c Config) (*Authenticator, error) {
	if c.Tokens == nil || c.Secrets == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "authn: tokens and secrets are both required")
	}
	if c.URL != "" {
		u, err := url.Parse(c.URL)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.Path != "" || u.RawQuery != "" ||
			u.Fragment != "" ||
			u.User != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "URL of the service %q: want https://HOST[:PORT]", c.URL)
		}
	}
	c.fill()
	fresh := make([]byte, 32)
	_, _ = rand.Read(fresh) // never fails
	key, err := c.Secrets.Secret(ctx, keyName, fresh)
	if err != nil {
		return nil, err
	}
	if len(key) < len(fresh) {
		return nil, registry.Errorf(registry.CodeInternal, "secret %s has %d bytes: want %d", keyName, len(key), len(fresh))
	}
	return &Authenticator{Config: c, key: key, failures: newFailures(c.Failures), uses: uses{of: make(map[string]time.Time)}}, nil
}

// fill sets what may be left out.
func (c *Config) fill() {
	if c.Identify == nil {
		c.Identify = func(context.Context, string) (storage.Principal, error) {
			return storage.Principal{}, registry.Errorf(registry.CodeUnauthenticated,
				"this service trusts no other token issuer")
		}
	}
	if c.ByClaims == nil {
		c.ByClaims = func(context.Context, string, []byte) (storage.Principal, error) {
			return storage.Principal{}, registry.Errorf(registry.CodeUnauthenticated,
				"this service trusts no issuer: sign in again")
		}
	}
	if c.Rules == nil {
		c.Rules = func() string { return "" }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// note logs why a caller was refused. It does not log requests without a credential, because
// OCI clients begin with one.
func (g *Authenticator) note(r *http.Request, err error) {
	level := slog.LevelInfo
	switch {
	case errors.As(err, new(tooMany)):
		level = slog.LevelWarn
	case registry.CodeOf(err) != registry.CodeUnauthenticated:
		level = slog.LevelError
	case len(r.Header.Values("Authorization")) == 0:
		level = slog.LevelDebug
	}
	g.Logger.Log(r.Context(), level, "refused", "method", r.Method, "path", r.URL.Path, "remote", r.RemoteAddr,
		"error", err)
}

// Base returns the URL of the service: the configured one, or that of the request.
func (g *Authenticator) Base(r *http.Request) string {
	if g.URL != "" {
		return g.URL
	}
	u := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	return strings.ReplaceAll(u.String(), `"`, "")
}

// used records the use of a token. A failure is only logged.
func (g *Authenticator) used(ctx context.Context, t storage.Token, now time.Time) {
	if !g.uses.due(t, now) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, usesPatience)
	defer cancel()
	if err := g.Tokens.UseToken(ctx, t.ID, now); err != nil {
		g.Logger.WarnContext(ctx, "recording the use of a token failed", "token", t.Name, "error", err)
	}
}
