package serving

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/pages"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/access/oidc"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/host"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/telemetry"
)

// Server is the service, ready to listen.
func (sv *Service) Server(ctx context.Context) (*http.Server, error) {
	s := sv.Process
	inner, err := sv.handler(ctx)
	if err != nil {
		return nil, err
	}
	var c *host.Certificate
	if s.config.TLSCert != "" {
		if c, err = host.LoadCertificate(s.config.TLSCert, s.config.TLSKey, clock.Now, s.logger, s.telemetry.Certificate); err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "--tls-cert, --tls-key: %w", err)
		}
	}
	protected, err := s.config.site(c, s.logger).Protect(inner)
	if err != nil {
		return nil, err
	}
	handler := host.EndStalled(sv.probes(protected), s.config.bodyTimeout)
	handler = s.telemetry.Requests(handler, routes(), s.logger)
	srv := s.config.timeouts().Server(host.SecurityHeaders(handler, s.config.strictTransport()), s.logger)
	if c != nil {
		srv.TLSConfig = c.TLSConfig()
	}
	return srv, nil
}

// probes answers whether the service lives and is ready, under whatever name it is asked:
// probes use addresses, or send no Host at all.
func (sv *Service) probes(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /readyz", sv.ready)
	mux.Handle("/", next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isBelow(r, "/api/") || isBelow(r, "/v2/") {
			next.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// isBelow reports whether a mux would hand a request on to the handler of all that is below prefix.
// To ask a mux takes longer than to read a row that is remembered. It redirects paths that are not
// clean.
func isBelow(r *http.Request, prefix string) bool {
	path := cmp.Or(r.URL.RawPath, r.URL.Path)
	return strings.HasPrefix(path, prefix) && r.Method != http.MethodConnect &&
		!strings.Contains(path, "//") && !strings.Contains(path, "/.")
}

// handler is everything else that the service answers until ctx ends.
func (sv *Service) handler(ctx context.Context) (http.Handler, error) {
	var err error
	if sv.authn, err = sv.authenticator(ctx); err != nil {
		return nil, err
	}
	bodies := host.BodyBudget{Arrive: sv.config.bodyTimeout}.Bodies()
	endpoint := sv.authn.Registry(telemetry.Identified(bodies.Limit(sv.current(func(g *generation) http.Handler { return g.endpoint }))))
	api := sv.authn.API(telemetry.Identified(bodies.Limit(sv.current(func(g *generation) http.Handler { return g.api }))))
	endpoint, api = atOneInstant(endpoint, distribution.IsLookup), atOneInstant(api, server.IsLookup)
	mux := http.NewServeMux()
	mux.Handle("/v2/", endpoint)
	mux.Handle("/api/", api)
	pages.Handle(mux, sv.authn, sv.logger, func() *pages.Site { return sv.keeper.InForce().pages },
		func() *oidc.Identifier { return sv.keeper.InForce().issuers }, telemetry.Identified)
	if sv.config.MetricsListen == "" {
		mux.Handle("GET /metrics", sv.authn.API(readers(sv.telemetry.Handler())))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isBelow(r, "/api/"):
			api.ServeHTTP(w, r)
		case isBelow(r, "/v2/"):
			endpoint.ServeHTTP(w, r)
		default:
			mux.ServeHTTP(w, r)
		}
	}), nil
}

// atOneInstant answers lookups as of one instant, access included.
func atOneInstant(next http.Handler, isLookup func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isLookup(r) {
			r = r.WithContext(storage.AtOneInstant(r.Context()))
		}
		next.ServeHTTP(w, r)
	})
}

// routes are the patterns of all paths, for labels.
func routes() telemetry.Routes {
	var patterns []string
	for _, r := range distribution.Routes() {
		patterns = append(patterns, strings.ReplaceAll(r.Pattern, "{repository}", "{name}"))
	}
	patterns = append(append(patterns, server.Paths()...), pages.Labels()...)
	return telemetry.NewRoutes(append(patterns, authn.TokenPath, "/healthz", "/readyz", "/metrics")...)
}

// ready answers whether requests can be answered, now and in a moment: that takes the
// database, the content of the other replicas, the agreed configuration, and a service that was not asked to stop. A problem
// that does not keep it from answering is reported with a 200.
func (sv *Service) ready(w http.ResponseWriter, r *http.Request) {
	if sv.stopping.Load() {
		http.Error(w, "the service is stopping", http.StatusServiceUnavailable)
		return
	}
	// Any look by a key will do, and no model has that name.
	if _, err := sv.Here.Catalog.Head(r.Context(), "", ""); err != nil && !registry.HasCode(err, registry.CodeNotFound) {
		sv.logger.ErrorContext(r.Context(), "not ready", "error", err)
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		return
	}
	if sv.Here.Replica.Check() != nil {
		http.Error(w, "this replica does not have the content of the others; the log has more", http.StatusServiceUnavailable)
		return
	}
	g := sv.keeper.InForce()
	switch state := sv.keeper.Status().State; {
	case state == history.ConfigurationDiffers:
		http.Error(w, "the configuration is not the agreed one; the log has more", http.StatusServiceUnavailable)
	case state == history.ConfigurationUnreadable:
		degraded(w, "the files of the configuration cannot be used, and the previous ones are still in force")
	case state == history.ConfigurationPending:
		degraded(w, "a change of the configuration waits for being adopted")
	case slices.ContainsFunc(g.findings, func(f config.Finding) bool { return f.Problem }):
		degraded(w, "something in the configuration cannot work")
	case sv.Here.Reserve != nil && registry.HasCode(sv.Here.Reserve.Check(0), registry.CodeFull):
		degraded(w, "the disk is full up to its reserve, so uploads are refused")
	case sv.damaged.Load() > 0:
		degraded(w, "stored content is damaged")
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// degraded answers that the service is ready, and what its operator should mend. Anybody may
// ask, so that details are for the log.
func degraded(w http.ResponseWriter, why string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ready, but degraded: "+why+"; the log has more\n") // whoever asked is gone
}
