package main

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/telemetry"
)

// handler is everything that the service answers.
func (a *app) handler(i *instance, s *serving) (http.Handler, error) {
	api, err := server.New(server.Config{Registry: s.telemetry.Registry(i), NodeType: a.nodeType, Logger: s.logger})
	if err != nil {
		return nil, err
	}
	endpoint, err := distribution.New(distribution.Config{
		Blobs: i.local.spared, Refs: i.local.refs, Deleter: service.Guard{Deleter: i.local.db, Manifests: i.local.refs, Catalog: i.local.catalog, Content: i.store},
		Uploads: i.local.uploads, Logger: s.logger,
		Authorize: func(_ context.Context, access distribution.Access) error { return mayWrite(i.environments, access) },
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/v2/", endpoint)
	mux.Handle("/api/", api)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.Handle("GET /readyz", ready(i, &s.stopping, s.logger))
	if s.config.metricsListen == "" {
		mux.Handle("GET /metrics", s.telemetry.Handler())
	}
	inside := telemetry.Identified(mux)
	return s.telemetry.Requests(paced(localOnly(inside), s.config.bodyTimeout), routes(), s.logger), nil
}

// routes are the patterns of all paths, for labels.
func routes() telemetry.Routes {
	const repository, model = "/v2/{name}/", "/api/v1/models/{model}/"
	return telemetry.NewRoutes(
		"/v2/", repository+"blobs/uploads/", repository+"blobs/uploads/{id}", repository+"blobs/{digest}",
		repository+"manifests/{reference}", repository+"tags/list", repository+"referrers/{digest}",
		"/api/v1/environments", "/api/v1/heads", "/api/v1/history",
		model+"resolve", model+"releases", model+"claims", model+"publications", model+"evidence", model+"promotions", model+"rollbacks", model+"hold-releases",
		"/healthz", "/readyz", "/metrics")
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
