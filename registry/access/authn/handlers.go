package authn

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/internal/ratelimit"
	"mlpromote.dev/mlpromote/registry/internal/requestid"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

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
