package main

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/service"
)

// server is the service, ready to listen.
func (a *app) server(ctx context.Context, e entrance, i *instance) (*http.Server, error) {
	options := &slog.HandlerOptions{}
	if a.verbose {
		options.Level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(a.ui.stderr, options))
	d, err := a.door(ctx, e, i, logger)
	if err != nil {
		return nil, err
	}
	handler, err := a.handler(i, d, logger)
	if err != nil {
		return nil, err
	}
	srv := &http.Server{
		Handler: secure(d.outside(handler), e.strictTransport()), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	if e.tlsCert == "" {
		return srv, nil
	}
	c, err := newCertificate(e.tlsCert, e.tlsKey, logger)
	if err != nil {
		return nil, err
	}
	srv.TLSConfig = c.config()
	return srv, nil
}

// handler is everything that the service answers.
func (a *app) handler(i *instance, d door, logger *slog.Logger) (http.Handler, error) {
	api, err := server.New(server.Config{Registry: access.Guard(i), NodeType: a.nodeType, Logger: logger})
	if err != nil {
		return nil, err
	}
	endpoint, err := distribution.New(distribution.Config{
		Blobs: i.local.blobs, Refs: i.local.db, Deleter: service.Guard{Deleter: i.local.db, Manifests: i.local.db, Catalog: i.local.db, Content: i.store},
		Uploads: blob.NewUploads(i.local.blobs), Logger: logger, Authorize: authorize(i.environments), Challenge: d.challenge,
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

// nodeType reads a named node: DATA/node-types/NAME.json.
func (a *app) nodeType(_ context.Context, name string) (registry.Node, error) {
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") || strings.ContainsRune(name, 0) {
		return registry.Node{}, registry.Errorf(registry.CodeInvalid, "node type %q: want a name", name)
	}
	described, err := node.ParseFile(filepath.Join(a.data, "node-types", name+".json"))
	switch {
	case registry.HasCode(err, registry.CodeNotFound):
		return registry.Node{}, registry.Errorf(registry.CodeNotFound, "node type %q is not known here", name)
	case err != nil: // the file is the operator's, so the mistake in it is for the log
		return registry.Node{}, registry.Errorf(registry.CodeInternal, "node type %s: %w", name, err)
	}
	return described, nil
}
