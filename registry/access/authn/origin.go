package authn

import (
	"log/slog"
	"net/http"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
)

// OriginCheck protects a service from requests that pages of other sites cause a browser to send.
type OriginCheck struct {
	Hosts  access.Hosts // the names of the service
	URL    string       // as clients reach it, for proxies that forward another Host; may be empty
	Logger *slog.Logger // nil discards
}

// Protect passes to next only requests whose Host is a name of the service. It also refuses
// requests that could change something and that a page of another site sent. Refused requests
// get 403, as an error of the protocol or as a problem. For clients other than browsers only
// the Host is checked. Errors: CodeInvalid for an invalid URL.
func (s OriginCheck) Protect(next http.Handler) (http.Handler, error) {
	cross := http.NewCrossOriginProtection()
	if s.URL != "" {
		if err := cross.AddTrustedOrigin(s.URL); err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "URL of the service: %w", err)
		}
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		switch {
		case !s.Hosts.Known(r.Host):
			err = registry.WithHint(
				registry.Errorf(registry.CodeForbidden, "Host %.200q is not a name of this service", r.Host),
				"if clients or a proxy reach it by that name, add it to --url or --hosts")
		case cross.Check(r) != nil:
			err = registry.Errorf(registry.CodeForbidden,
				"%s: a browser sent this for a page of another site, %.200q", r.Method, r.Header.Get("Origin"))
		default:
			next.ServeHTTP(w, r)
			return
		}
		s.Logger.WarnContext(r.Context(), "refused", "method", r.Method, "path", r.URL.Path, "remote", r.RemoteAddr,
			"error", err)
		if r.URL.Path == "/v2" || strings.HasPrefix(r.URL.Path, "/v2/") {
			w.Header().Set("Content-Type", "application/json")
			refuse(w, http.StatusForbidden, "DENIED", err.Error())
			return
		}
		answerProblem(w, r, err)
	}), nil
}
