package signin

import (
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/access/oidc"
)

const (
	// TokenPath is where a form with the fields token and return is sent.
	TokenPath = "/signin/token"
	// WithPath is where the paths of issuers begin: /signin/with/NAME?return=PATH.
	WithPath = "/signin/with/"
	// OutPath is where a form is sent to sign out, with everywhere=1 of all browsers.
	OutPath = "/signout"

	visitLife   = 10 * time.Minute // to sign in at an issuer
	maxForm     = 8 << 10          // bytes
	maxReturn   = 1 << 10          // bytes
	visitSuffix = "-visit"
)

// Config configures the handler. All fields but Logger are required.
type Config struct {
	Authenticator *authn.Authenticator
	// Issuers returns the issuers that are trusted now.
	Issuers func() *oidc.Identifier
	// Refuse answers with the page on which people sign in, and says why they are not. back is the path of the
	// page that they wanted.
	Refuse func(w http.ResponseWriter, r *http.Request, err error, back string)
	Logger *slog.Logger // nil discards
}

type handler struct{ Config }

// New returns the handler of [TokenPath], [WithPath] and [OutPath].
func New(c Config) http.Handler {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	h := handler{c}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+TokenPath, h.byToken)
	mux.HandleFunc("GET "+WithPath+"{name}", h.begin)
	mux.HandleFunc("GET "+WithPath+"{name}/callback", h.finish)
	mux.HandleFunc("POST "+OutPath, h.out)
	return mux
}

// Patterns are the paths, for the labels of metrics.
func Patterns() []string {
	return []string{TokenPath, WithPath + "{name}", WithPath + "{name}/callback", OutPath}
}

// byToken signs in the bearer of a token.
func (h handler) byToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		h.refuse(w, r, registry.Errorf(registry.CodeInvalid, "the form cannot be read: want at most %d bytes", maxForm), "/")
		return
	}
	back := Local(r.PostForm.Get("return"))
	if err := h.Authenticator.SignIn(w, r, strings.TrimSpace(r.PostForm.Get("token"))); err != nil {
		h.refuse(w, r, err, back)
		return
	}
	http.Redirect(w, r, back, http.StatusSeeOther) //nolint:gosec // Local lets no other site pass
}

// begin sends a person to an issuer.
func (h handler) begin(w http.ResponseWriter, r *http.Request) {
	back := Local(r.URL.Query().Get("return"))
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		h.refuse(w, r, registry.Errorf(registry.CodeForbidden, "a page of another site sent you here: sign in on this page"), back)
		return
	}
	visit, page, err := h.Issuers().Begin(r.Context(), r.PathValue("name"), h.callback(r))
	if err != nil {
		h.refuse(w, r, err, back)
		return
	}
	visit.Return = back
	text, err := json.Marshal(visit)
	if err != nil {
		h.refuse(w, r, err, back)
		return
	}
	http.SetCookie(w, h.Authenticator.Cookie(r, visitSuffix, base64.RawURLEncoding.EncodeToString(text), visitLife))
	http.Redirect(w, r, page, http.StatusSeeOther) //nolint:gosec // of the issuer's own document
}

// finish signs in the person whom an issuer sent back. The visit ends, whatever comes of it.
func (h handler) finish(w http.ResponseWriter, r *http.Request) {
	visit := h.visit(r)
	http.SetCookie(w, h.Authenticator.Cookie(r, visitSuffix, "", -1))
	back := Local(visit.Return)
	if visit.Name != r.PathValue("name") {
		h.refuse(w, r, registry.Errorf(registry.CodeUnauthenticated,
			"no sign-in began in this browser in the last %v: sign in again", visitLife), back)
		return
	}
	err := h.Authenticator.MayTry(r)
	var who oidc.SignedIn
	if err == nil {
		who, err = h.Issuers().Finish(r.Context(), visit, h.callback(r), r.URL.Query())
		h.Authenticator.Failed(r, err)
	}
	if err == nil {
		err = h.Authenticator.SignInAt(w, r, who.Issuer, who.Subject, who.Claims)
	}
	if err != nil {
		h.refuse(w, r, err, back)
		return
	}
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// visit returns the sign-in that began in this browser; the zero one if there is none.
func (h handler) visit(r *http.Request) oidc.Visit {
	var v oidc.Visit
	cookie, err := r.Cookie(h.Authenticator.Cookie(r, visitSuffix, "", -1).Name)
	if err != nil {
		return v
	}
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || json.Unmarshal(text, &v) != nil {
		return oidc.Visit{}
	}
	return v
}

// callback is the URL to which an issuer sends people back. Each issuer has its own, so that a code of one
// is never taken for a code of another.
//
// Source: https://www.rfc-editor.org/rfc/rfc9700#section-4.4.2.
func (h handler) callback(r *http.Request) string {
	return h.Authenticator.Base(r) + WithPath + r.PathValue("name") + "/callback"
}

// out signs out.
func (h handler) out(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := h.Authenticator.SignOut(w, r, r.FormValue("everywhere") != ""); err != nil {
		h.refuse(w, r, err, "/")
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (h handler) refuse(w http.ResponseWriter, r *http.Request, err error, back string) {
	level := slog.LevelInfo
	if code := registry.CodeOf(err); code == registry.CodeInternal || code == registry.CodeUnavailable {
		level = slog.LevelError
	}
	h.Logger.Log(r.Context(), level, "not signed in", "path", r.URL.Path, "remote", r.RemoteAddr, "error", err)
	h.Refuse(w, r, err, back)
}

// Local returns the path with its query if it is one of this service, and otherwise "/". A browser takes
// "//HOST" and "/\HOST" for another site.
func Local(path string) string {
	u, err := url.Parse(path)
	if err != nil || len(path) > maxReturn || u.Scheme != "" || u.Host != "" || u.User != nil ||
		!strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsFunc(path, notInPath) {
		return "/"
	}
	return path
}

func notInPath(c rune) bool { return c <= ' ' || c == '\\' || c >= 0x7f }
