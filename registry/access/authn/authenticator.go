package authn

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/internal/ratelimit"
	"mlpromote.dev/mlpromote/registry/internal/requestid"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

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

// API passes requests with a known principal to next. It answers others with a problem (RFC
// 9457).
func (g *Authenticator) API(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := g.admitRead(r)
		if err == nil {
			next.ServeHTTP(w, r.WithContext(who.in(r.Context())))
			return
		}
		g.note(r, err)
		answerProblem(w, r, err)
	})
}

// answerProblem answers an API request that was refused.
func answerProblem(w http.ResponseWriter, r *http.Request, err error) {
	r = requestid.Name(w, r)
	p := rest.NewProblem(err)
	p.RequestID = requestid.Of(r.Context())
	var late tooMany
	if errors.As(err, &late) {
		p.Status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", ratelimit.RetryAfter(late.wait))
	}
	if p.Status == http.StatusServiceUnavailable && !p.Lasting() {
		w.Header().Set("Retry-After", rest.RetryAfter)
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="mlpromote"`)
	}
	w.Header().Set("Content-Type", rest.ProblemType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // this fails only if the client is gone
}

// Registry wraps the handler of /v2/. It serves [TokenPath] itself. All other requests go to
// next with the principal in the context, or with the reason why there is none, so that next
// can refuse in the form of the protocol.
func (g *Authenticator) Registry(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == TokenPath {
			g.serveToken(w, r)
			return
		}
		who, err := g.admit(r)
		if err != nil {
			g.note(r, err)
			if g.answerTooMany(w, err) {
				return
			}
			next.ServeHTTP(w, r.WithContext(access.WithRefusal(r.Context(), err)))
			return
		}
		next.ServeHTTP(w, r.WithContext(who.in(r.Context())))
	})
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

// openRules is the value of the rules during open access. No configuration has this value, so
// tokens that OCI clients got then are refused once open access has ended.
const openRules = "open"

// identity is the sender of a request.
type identity struct {
	principal storage.Principal
	token     string          // ID of the token that was sent; empty for other credentials
	rules     string          // read before the issuer's token was checked
	asked     []storage.Grant // what an OCI client asked for when it got its own token
	derived   bool            // the credential is a token that this service made for an OCI client
}

func (i identity) in(ctx context.Context) context.Context {
	if i.derived {
		ctx = access.WithAsked(ctx, i.asked)
	}
	return storage.WithPrincipal(ctx, i.principal)
}

// admit returns the sender of a request: anonymous during open access. Errors: as identify.
func (g *Authenticator) admit(r *http.Request) (identity, error) {
	open, err := g.Open.ToAll(r.Context())
	switch {
	case err != nil:
		return identity{}, err
	case open:
		return identity{principal: access.Anonymous(), rules: openRules}, nil
	case g.Open != nil:
		g.closing.Do(func() {
			g.Logger.WarnContext(r.Context(), "a first token or access.yaml exists: from now on every caller needs a token")
		})
	}
	return g.identify(r)
}

// StillAdmitted authenticates the sender of a running request again, for responses that take
// long. Meanwhile a token may have expired or been revoked, and open access may have ended.
// Errors: CodeUnauthenticated if the sender would not be admitted now with the same grants;
// others as identify.
func (g *Authenticator) StillAdmitted(r *http.Request) error {
	was, _ := storage.PrincipalOf(r.Context())
	who, err := g.admitRead(r)
	if err == nil && !reflect.DeepEqual(who.principal, was) {
		err = registry.Errorf(registry.CodeUnauthenticated,
			"the permissions of the caller have changed: send the request again")
	}
	return err
}

// identify authenticates the sender of a request. Errors: CodeUnauthenticated; tooMany, which
// is CodeUnavailable; others if the sender could not be checked.
func (g *Authenticator) identify(r *http.Request) (identity, error) {
	secret, err := credential(r.Header.Values("Authorization"))
	if err != nil {
		return identity{}, err
	}
	now := g.Now()
	if err := g.failures.allow(r, secret, now); err != nil {
		return identity{}, err
	}
	who, err := g.whose(r.Context(), secret, now)
	g.failures.tell(r, secret, err, now)
	return who, err
}

// whose returns the identity for a credential. Errors: as identify.
func (g *Authenticator) whose(ctx context.Context, secret string, now time.Time) (identity, error) {
	if access.IsToken(secret) {
		t, err := access.Redeem(ctx, g.Tokens, secret, now)
		if err == nil {
			g.used(ctx, t, now)
		}
		return identity{principal: access.Bearer(t), token: t.ID}, err
	}
	if token, ok := ours(secret); ok {
		return g.verify(ctx, token)
	}
	if strings.Count(secret, ".") != 2 {
		return identity{}, registry.Errorf(registry.CodeUnauthenticated,
			"the credential is not a token: want mlp_..., or a JWT of an issuer that this service trusts")
	}
	rules := g.Rules() // read first: if they change meanwhile, the token is refused later
	p, err := g.Identify(ctx, secret)
	return identity{principal: p, rules: rules}, err
}
