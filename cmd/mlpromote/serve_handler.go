package main

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/service"
)

// handler is everything that the service answers until ctx ends.
func (a *app) handler(ctx context.Context, i *instance, hooks hooks) (http.Handler, error) {
	logger := slog.New(slog.NewTextHandler(a.ui.stderr, nil))
	api, err := server.New(apiConfig(ctx, i, hooks, logger))
	if err != nil {
		return nil, err
	}
	endpoint, err := distribution.New(distribution.Config{
		Blobs: i.local.spared, Refs: i.local.db, Deleter: service.Guard{Deleter: i.local.db, Manifests: i.local.db, Catalog: i.local.db, Content: i.store},
		Uploads: i.local.uploads, Logger: logger,
		Authorize: func(_ context.Context, access distribution.Access) error { return mayWrite(i.environments, access) },
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/v2/", endpoint)
	mux.Handle("/api/", api)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.Handle("GET /readyz", ready(i, logger))
	return localOnly(mux), nil
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

// mayWrite keeps everybody but the service out of protected environments, and out of
// repositories that belong to none.
func mayWrite(environments registry.Environments, access distribution.Access) error {
	if access.Action == distribution.Pull {
		return nil
	}
	if access.Repository == "" {
		return nil
	}
	name, _, _ := strings.Cut(access.Repository, "/")
	environment, err := environments.Find(name)
	if err != nil {
		return registry.Errorf(registry.CodePolicy, "repository %s is in no environment: %w", access.Repository, err)
	}
	if environment.Protected() {
		return registry.Errorf(registry.CodePolicy, "environment %s is protected: promote a release into it", name)
	}
	return nil
}
