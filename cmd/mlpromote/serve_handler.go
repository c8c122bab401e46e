package main

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/service"
)

// server is the service, ready to listen.
func (a *app) server(ctx context.Context, config serveConfig, i *instance, stopping *atomic.Bool) (*http.Server, error) {
	options := &slog.HandlerOptions{}
	if a.verbose {
		options.Level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(a.ui.stderr, options))
	d, err := a.door(ctx, config.entrance, i, logger)
	if err != nil {
		return nil, err
	}
	handler, err := a.handler(ctx, i, config, d, stopping, logger)
	if err != nil {
		return nil, err
	}
	srv := &http.Server{
		Handler:           secure(paced(d.outside(handler), config.bodyTimeout), config.strictTransport()),
		ReadHeaderTimeout: config.headerTimeout, IdleTimeout: config.idleTimeout, MaxHeaderBytes: config.maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	if config.tlsCert == "" {
		return srv, nil
	}
	c, err := newCertificate(config.tlsCert, config.tlsKey, logger)
	if err != nil {
		return nil, err
	}
	srv.TLSConfig = c.config()
	return srv, nil
}

// handler is everything that the service answers until ctx ends.
func (a *app) handler(ctx context.Context, i *instance, config serveConfig, d door, stopping *atomic.Bool, logger *slog.Logger) (http.Handler, error) {
	api, err := server.New(apiConfig(ctx, i, config.hooks, logger))
	if err != nil {
		return nil, err
	}
	endpoint, err := distribution.New(distribution.Config{
		Blobs: i.local.spared, Refs: i.local.db, Deleter: service.Guard{Deleter: i.local.db, Manifests: i.local.db, Catalog: i.local.db, Content: i.store},
		Uploads: i.local.uploads, Redirect: i.local.blobs.redirect, Logger: logger, Principal: principalName,
		Authorize: authorize(i.environments), Challenge: d.challenge,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/v2/", d.registry(endpoint))
	mux.Handle("/api/", d.api(api))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.Handle("GET /readyz", ready(i, stopping, logger))
	return mux, nil
}

// ready answers whether requests can be answered, now and in a moment: that takes the
// database, and that nobody has asked the service to stop.
func ready(r registry.Reader, stopping *atomic.Bool, logger *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if stopping.Load() {
			http.Error(w, "the service is stopping", http.StatusServiceUnavailable)
			return
		}
		if _, err := r.Heads(req.Context(), "", ""); err != nil {
			logger.ErrorContext(req.Context(), "not ready", "error", err)
			http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}
