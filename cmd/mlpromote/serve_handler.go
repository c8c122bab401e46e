package main

import (
	"context"
	"log/slog"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/service"
)

// server is the service, ready to listen.
func (a *app) server(ctx context.Context, config serveConfig, i *instance) (*http.Server, error) {
	options := &slog.HandlerOptions{}
	if a.verbose {
		options.Level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(a.ui.stderr, options))
	d, err := a.door(ctx, config.entrance, i, logger)
	if err != nil {
		return nil, err
	}
	handler, err := a.handler(ctx, i, config.hooks, d, logger)
	if err != nil {
		return nil, err
	}
	srv := &http.Server{
		Handler:           secure(d.outside(handler), config.strictTransport()),
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
func (a *app) handler(ctx context.Context, i *instance, hooks hooks, d door, logger *slog.Logger) (http.Handler, error) {
	api, err := server.New(apiConfig(ctx, i, hooks, logger))
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
	mux.Handle("GET /readyz", ready(i, logger))
	return mux, nil
}

// ready answers whether requests can be answered: that takes the database.
func ready(r registry.Reader, logger *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if _, err := r.Heads(req.Context(), "", ""); err != nil {
			logger.ErrorContext(req.Context(), "not ready", "error", err)
			http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}
