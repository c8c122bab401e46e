package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/service"
)

// Timeouts of the service. There is none for whole requests: blobs take as long as
// they take.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 30 * time.Second
)

func (a *app) serveCommand() *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Put the data directory on the network",
		Long: `Serves the OCI endpoint (/v2/), the REST API (/api/v1) and /healthz and /readyz. Protected
environments are written by promotions alone. There is no authentication yet, so only a
loopback address is served. With --database there may be several services on one data
directory, and verbs beside them; otherwise one has it to itself. stdout: the URL.`,
		Example: "  mlpromote serve --listen 127.0.0.1:5080 --data /srv/mlpromote",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if a.registry != "" {
				return registry.Errorf(registry.CodeInvalid, "serve works on a data directory, not on --registry %s", a.registry)
			}
			return a.serve(c.Context(), listen)
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:5080", "loopback address and port; port 0 takes a free one")
	return c
}

func (a *app) serve(ctx context.Context, address string) (err error) {
	if err := loopback(address); err != nil {
		return err
	}
	if err := a.create(); err != nil {
		return err
	}
	announce, unlock, err := a.lockServed()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	i, err := a.openDirectory(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.close()) }()
	if n, err := i.local.blobs.Sweep(ctx, now()); err != nil || n > 0 {
		a.ui.note("removed %d leftovers of uploads that were broken off: %v", n, err)
	}
	handler, err := a.handler(i)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return registry.Errorf(registry.CodeUnavailable, "listen on %s: %w", address, err)
	}
	url := "http://" + listener.Addr().String()
	if err := announce(url); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := a.ui.result(url, map[string]string{"url": url}); err != nil {
		return errors.Join(err, listener.Close())
	}
	a.ui.note("serving %s; MLPROMOTE_REGISTRY=%s points the verbs here", a.data, url)
	return untilDone(ctx, &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout}, listener)
}

// untilDone serves until ctx ends, and then lets requests finish.
func untilDone(ctx context.Context, srv *http.Server, listener net.Listener) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		stopped <- srv.Shutdown(grace)
	})
	err := srv.Serve(listener)
	if stop() { // it ended by itself
		return err
	}
	return <-stopped
}

// loopback refuses addresses that others can reach, since nobody is asked who he is.
func loopback(address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return registry.Errorf(registry.CodeInvalid, "--listen %q: want HOST:PORT, for example 127.0.0.1:5080", address)
	}
	if isLoopback(address) {
		return nil
	}
	return registry.Errorf(registry.CodeInvalid, "--listen %s: only a loopback address is served, as there is no authentication yet; put a proxy that authenticates in front", address)
}

func (a *app) handler(i *instance) (http.Handler, error) {
	logger := slog.New(slog.NewTextHandler(a.ui.stderr, nil))
	api, err := server.New(server.Config{Registry: i, NodeType: a.nodeType, Logger: logger})
	if err != nil {
		return nil, err
	}
	endpoint, err := distribution.New(distribution.Config{
		Blobs: i.local.blobs, Refs: i.local.db, Deleter: service.Guard{Deleter: i.local.db, Manifests: i.local.db, Catalog: i.local.db, Content: i.store},
		Uploads: blob.NewUploads(i.local.blobs), Logger: logger,
		Authorize: func(_ context.Context, access distribution.Access) error { return mayWrite(i.environments, access) },
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/v2/", endpoint)
	mux.Handle("/api/", api)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if _, err := i.Heads(r.Context(), "", ""); err != nil {
			logger.Error("not ready", "error", err)
			http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return localOnly(mux), nil
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
