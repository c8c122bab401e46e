package main

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access/gate"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/telemetry"
)

// server is the service, ready to listen.
func (a *app) server(ctx context.Context, s *serving, i *instance) (*http.Server, error) {
	d, err := a.door(ctx, s.config, i, s.logger)
	if err != nil {
		return nil, err
	}
	s.reload = d.reload
	handler, err := a.handler(ctx, i, s, d)
	if err != nil {
		return nil, err
	}
	srv := s.server(secure(s.telemetry.Requests(paced(held(d.outside(handler), s.config.bodyTimeout), s.config.bodyTimeout), routes(), s.logger), s.config.strictTransport()))
	if s.config.tlsCert == "" {
		return srv, nil
	}
	c, err := newCertificate(s.config.tlsCert, s.config.tlsKey, s.logger)
	if err != nil {
		return nil, err
	}
	srv.TLSConfig = c.config()
	return srv, nil
}

// handler is everything that the service answers until ctx ends.
func (a *app) handler(ctx context.Context, i *instance, s *serving, d door) (http.Handler, error) {
	api, err := server.New(apiConfig(ctx, i, s))
	if err != nil {
		return nil, err
	}
	endpoint, err := distribution.New(distribution.Config{
		Blobs: i.local.spared, Refs: i.local.refs, Deleter: service.Guard{Deleter: i.local.db, Manifests: i.local.refs, Catalog: i.local.catalog, Content: i.store},
		Uploads: i.local.uploads, MaxUploads: s.config.maxUploads, UploadCounts: i.local.db, Redirect: i.local.blobs.redirect, Logger: s.logger, Principal: principalName,
		Authorize: authorize(i.environments), Challenge: d.challenge,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/v2/", d.registry(telemetry.Identified(endpoint)))
	mux.Handle("/api/", d.api(telemetry.Identified(api)))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.Handle("GET /readyz", ready(i.local.catalog, &s.stopping, s.logger))
	if s.config.metricsListen == "" {
		mux.Handle("GET /metrics", d.metrics(s.telemetry.Handler()))
	}
	return mux, nil
}

// routes are the patterns of all paths, for labels.
func routes() telemetry.Routes {
	var patterns []string
	for _, r := range distribution.Routes() {
		patterns = append(patterns, strings.ReplaceAll(r.Pattern, "{repository}", "{name}"))
	}
	for _, r := range server.Routes() {
		patterns = append(patterns, r.Pattern)
	}
	return telemetry.NewRoutes(append(patterns, gate.TokenPath, "/healthz", "/readyz", "/metrics")...)
}

// ready answers whether requests can be answered, now and in a moment: that takes the
// database, and that nobody has asked the service to stop.
func ready(catalog registry.Catalog, stopping *atomic.Bool, logger *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if stopping.Load() {
			http.Error(w, "the service is stopping", http.StatusServiceUnavailable)
			return
		}
		// Any look by a key will do, and no model has that name.
		if _, err := catalog.Head(req.Context(), "", ""); err != nil && !registry.HasCode(err, registry.CodeNotFound) {
			logger.ErrorContext(req.Context(), "not ready", "error", err)
			http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}
