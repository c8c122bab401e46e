package authn

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/storage"
)

// SessionLife is the lifetime of a session. A session that a token opened also ends with the token, at
// once if that is revoked.
const SessionLife = 12 * time.Hour

// Pages passes requests of browsers to next: with the principal of the session, or, without one, with the
// reason in the context, so that next can ask to sign in. Requests with an Authorization header are those
// of programs. A session does not count for a request that could change something unless the browser
// says that a page of this service sent it.
func (g *Authenticator) Pages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := g.admitPage(r)
		if err != nil {
			g.note(r, err)
			next.ServeHTTP(w, r.WithContext(access.WithRefusal(r.Context(), err)))
			return
		}
		next.ServeHTTP(w, r.WithContext(who.in(r.Context())))
	})
}

// admitPage returns who sends a request for a page. Errors: as identify, and CodeForbidden for a request
// that a page of another site may have sent.
func (g *Authenticator) admitPage(r *http.Request) (identity, error) {
	if !g.hasSession(r) {
		who, err := g.admit(r)
		if g.Sessions != nil && len(r.Header.Values("Authorization")) == 0 && registry.HasCode(err, registry.CodeUnauthenticated) {
			err = registry.Errorf(registry.CodeUnauthenticated, "you are not signed in") // a person needs no token for that
		}
		return who, err
	}
	if !isSafe(r) && !g.SameOrigin(r) {
		return identity{}, registry.Errorf(registry.CodeForbidden,
			"%s: the browser does not say that a page of this service sent this", r.Method)
	}
	s, err := g.session(r)
	if err != nil {
		return identity{}, err
	}
	return g.bySession(r.Context(), s)
}

// admitRead is admit for the API: a person who follows a link from a page to its data reads it by the
// session. Nothing is changed by a session there.
func (g *Authenticator) admitRead(r *http.Request) (identity, error) {
	if isSafe(r) && g.hasSession(r) && slices.Contains([]string{"same-origin", "none"}, r.Header.Get("Sec-Fetch-Site")) {
		return g.admitPage(r)
	}
	return g.admit(r)
}

// hasSession reports whether a request came with a session and nothing else to tell who sent it.
func (g *Authenticator) hasSession(r *http.Request) bool {
	if g.Sessions == nil || len(r.Header.Values("Authorization")) > 0 {
		return false
	}
	_, err := r.Cookie(g.cookieName(r))
	return err == nil
}

// session returns the session of a request. Errors: CodeUnauthenticated if it has ended; others if it
// could not be looked up.
func (g *Authenticator) session(r *http.Request) (storage.Session, error) {
	cookie, err := r.Cookie(g.cookieName(r))
	if err != nil {
		return storage.Session{}, registry.Errorf(registry.CodeUnauthenticated, "you are not signed in")
	}
	return access.RedeemSession(r.Context(), g.Sessions, cookie.Value, g.Now())
}

// bySession returns what the bearer of a session may do now.
func (g *Authenticator) bySession(ctx context.Context, s storage.Session) (identity, error) {
	if s.Token == "" {
		rules := g.Rules()
		p, err := g.ByClaims(ctx, s.Issuer, s.Claims)
		return identity{principal: p, rules: rules}, err
	}
	t, err := g.Tokens.FindToken(ctx, s.Token)
	if err == nil {
		err = access.Usable(t, g.Now())
	}
	if registry.HasCode(err, registry.CodeNotFound) {
		err = registry.Errorf(registry.CodeUnauthenticated, "the token of the session is gone: sign in again")
	}
	if err != nil {
		return identity{}, err
	}
	g.used(ctx, t, g.Now())
	return identity{principal: access.Bearer(t), token: t.ID}, nil
}

// SignIn opens a session for the bearer of a token of this service, and answers with its cookie. A session
// that the browser had ends. Errors: CodeUnauthenticated for a token that is not valid; CodeUnavailable for
// an address with too many of them; CodeForbidden if a page of another site may have sent the request.
func (g *Authenticator) SignIn(w http.ResponseWriter, r *http.Request, token string) error {
	if !g.SameOrigin(r) {
		return registry.Errorf(registry.CodeForbidden, "the browser does not say that a page of this service sent this")
	}
	if !access.IsToken(token) {
		return registry.Errorf(registry.CodeUnauthenticated, "want a token of this service: mlp_...")
	}
	now := g.Now()
	if err := g.failures.allow(r, token, now); err != nil {
		return err
	}
	t, err := access.Redeem(r.Context(), g.Tokens, token, now)
	g.failures.tell(r, token, err, now)
	if err != nil {
		return err
	}
	s := storage.Session{Owner: "token " + t.ID, Token: t.ID, Created: now, Expires: now.Add(SessionLife)}
	if !t.Expires.IsZero() && t.Expires.Before(s.Expires) {
		s.Expires = t.Expires
	}
	return g.open(w, r, s, access.Bearer(t).Name)
}

// MayTry refuses a sign-in from an address with too many that failed. Errors: CodeUnavailable.
func (g *Authenticator) MayTry(r *http.Request) error { return g.failures.allow(r, "", g.Now()) }

// Failed counts a sign-in that failed with an error of code CodeUnauthenticated.
func (g *Authenticator) Failed(r *http.Request, err error) {
	if err != nil {
		g.failures.tell(r, "", err, g.Now())
	}
}

// SignInAt opens a session for the subject whose claims an issuer signed just now, and answers with its
// cookie. The caller has verified them. Errors: CodeUnauthenticated if no rule lets the subject in.
func (g *Authenticator) SignInAt(w http.ResponseWriter, r *http.Request, issuer, subject string, claims []byte) error {
	p, err := g.ByClaims(r.Context(), issuer, claims)
	if err != nil {
		return err
	}
	now := g.Now()
	return g.open(w, r, storage.Session{
		Owner: "oidc " + issuer + "#" + subject, Issuer: issuer, Claims: claims, Created: now, Expires: now.Add(SessionLife),
	}, p.Name)
}

// open stores a new session and gives it to the browser.
func (g *Authenticator) open(w http.ResponseWriter, r *http.Request, s storage.Session, name string) error {
	if g.Sessions == nil {
		return registry.Errorf(registry.CodeInvalid, "this service has no sessions")
	}
	s, text, err := access.MintSession(s)
	if err != nil {
		return err
	}
	if old, err := g.session(r); err == nil {
		if err := g.Sessions.EndSession(r.Context(), old.ID); err != nil {
			return err
		}
	}
	if err := g.Sessions.CreateSession(r.Context(), s); err != nil {
		return err
	}
	g.Logger.InfoContext(r.Context(), "signed in", "principal", name, "session", s.ID, "remote", r.RemoteAddr)
	http.SetCookie(w, g.Cookie(r, "", text, s.Expires.Sub(s.Created)))
	return nil
}

// SignOut ends the session of a request, or all sessions of its owner, and answers with a cookie that
// deletes the browser's. It succeeds if the session has ended already. Errors: CodeForbidden if a page of
// another site may have sent the request; others if the sessions could not be ended.
func (g *Authenticator) SignOut(w http.ResponseWriter, r *http.Request, everywhere bool) error {
	if !g.SameOrigin(r) {
		return registry.Errorf(registry.CodeForbidden, "the browser does not say that a page of this service sent this")
	}
	if g.Sessions == nil {
		return nil
	}
	s, err := g.session(r)
	switch {
	case registry.HasCode(err, registry.CodeUnauthenticated):
	case err != nil:
		return err
	case everywhere:
		n, err := g.Sessions.EndSessions(r.Context(), s.Owner)
		if err != nil {
			return err
		}
		g.Logger.InfoContext(r.Context(), "signed out everywhere", "session", s.ID, "sessions", n)
	default:
		if err := g.Sessions.EndSession(r.Context(), s.ID); err != nil {
			return err
		}
		g.Logger.InfoContext(r.Context(), "signed out", "session", s.ID)
	}
	http.SetCookie(w, g.Cookie(r, "", "", -1))
	return nil
}

// Cookie is a cookie for this service alone, which scripts cannot read: the session, or a cookie named
// after it. A negative life deletes it. On a service without TLS, which only this machine reaches, it
// lacks the prefix that needs TLS.
//
// Source: https://www.rfc-editor.org/rfc/rfc6265#section-4.1 and "__Host-" of
// https://developer.mozilla.org/docs/Web/HTTP/Reference/Headers/Set-Cookie.
func (g *Authenticator) Cookie(r *http.Request, suffix, value string, life time.Duration) *http.Cookie {
	seconds := int(life.Seconds())
	if life < 0 {
		seconds = -1
	}
	return &http.Cookie{ //nolint:gosec // Secure wherever there is TLS
		Name: g.cookieName(r) + suffix, Value: value, Path: "/", MaxAge: seconds,
		HttpOnly: true, Secure: g.overTLS(r), SameSite: http.SameSiteLaxMode,
	}
}

func (g *Authenticator) cookieName(r *http.Request) string {
	if g.overTLS(r) {
		return "__Host-mlpromote"
	}
	return "mlpromote"
}

func (g *Authenticator) overTLS(r *http.Request) bool {
	return strings.HasPrefix(g.Base(r), "https://")
}

// SameOrigin reports whether the browser says that a page of this service sent a request. Programs that say
// nothing are not believed: [http.CrossOriginProtection] lets them pass, because they have no cookies.
func (g *Authenticator) SameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	return r.Header.Get("Origin") == g.Base(r)
}

func isSafe(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
