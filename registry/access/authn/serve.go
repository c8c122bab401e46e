package authn

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/internal/ratelimit"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// TokenPath is where OCI clients request tokens.
//
// Source: https://distribution.github.io/distribution/spec/auth/token/.
const TokenPath = "/v2/token"

// Challenge returns the WWW-Authenticate header that tells an OCI client where to get a token
// and for which scope. An empty repository requests a token without a scope.
func (g *Authenticator) Challenge(r *http.Request, repository string, permission storage.Permission) string {
	challenge := `Bearer realm="` + g.Base(r) + TokenPath + `",service="` + Service + `"`
	if repository == "" && permission == storage.PermissionList {
		return challenge + `,scope="` + access.CatalogScope + `"`
	}
	if repository == "" {
		return challenge
	}
	actions := access.ActionPull
	switch permission {
	case storage.PermissionPush: // clients check what exists before they push
		actions += "," + access.ActionPush
	case storage.PermissionAdminister:
		actions += "," + access.ActionDelete
	}
	return challenge + `,scope="repository:` + repository + ":" + actions + `"`
}

// issued is the response to a token request. Clients use both names of the token.
type issued struct {
	Token       string `json:"token"`
	AccessToken string `json:"access_token"`
	ExpiresIn   int    `json:"expires_in"` // seconds
	IssuedAt    string `json:"issued_at"`  // RFC 3339
}

// serveToken issues a token to an OCI client.
func (g *Authenticator) serveToken(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet { // some clients try POST first, and then this
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "method "+r.Method+": want GET")
		return
	}
	answer, err := g.issue(r)
	if err == nil {
		_ = json.NewEncoder(w).Encode(answer) //nolint:gosec // the token is the response; fails if the client is gone
		return
	}
	g.note(r, err)
	if g.answerTooMany(w, err) {
		return
	}
	switch registry.CodeOf(err) {
	case registry.CodeUnauthenticated:
		w.Header().Set("WWW-Authenticate", `Basic realm="mlpromote", charset="UTF-8"`)
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", err.Error())
	case registry.CodeInvalid:
		refuse(w, http.StatusBadRequest, "UNSUPPORTED", err.Error())
	case registry.CodeUnavailable:
		w.Header().Set("Retry-After", rest.RetryAfter)
		refuse(w, http.StatusServiceUnavailable, "TOOMANYREQUESTS", "the registry is unavailable; try again later")
	default:
		refuse(w, http.StatusInternalServerError, "UNSUPPORTED", "internal error; see the log of the registry")
	}
}

// issue answers a token request. It refuses a token that was issued here, which could otherwise
// be renewed forever.
func (g *Authenticator) issue(r *http.Request) (issued, error) {
	who, err := g.identify(r)
	if err != nil {
		return issued{}, err
	}
	if who.derived {
		return issued{}, registry.Errorf(registry.CodeUnauthenticated,
			"want your original token, not one that was issued here for it")
	}
	query := r.URL.Query()
	if service := query.Get("service"); service != "" && service != Service {
		return issued{}, registry.Errorf(registry.CodeInvalid, "service %.100q: want %s", service, Service)
	}
	asked, err := scopes(query["scope"])
	if err != nil {
		return issued{}, err
	}
	token, err := g.derive(who, asked)
	return issued{
		Token:       token,
		AccessToken: token,
		ExpiresIn:   int(Lifetime.Seconds()),
		IssuedAt:    g.Now().UTC().Format(time.RFC3339),
	}, err
}

// refuse sends an error in the form of the OCI protocol.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	type problem struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	_ = json.NewEncoder(w).Encode(map[string][]problem{"errors": {{code, message}}}) // the client is gone if this fails
}

// answerTooMany tells an OCI client to wait, if it must, and reports whether it did.
func (g *Authenticator) answerTooMany(w http.ResponseWriter, err error) bool {
	var late tooMany
	if !errors.As(err, &late) {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", ratelimit.RetryAfter(late.wait))
	refuse(w, http.StatusTooManyRequests, "TOOMANYREQUESTS", err.Error())
	return true
}
