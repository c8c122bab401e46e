package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/registry"
)

// Timeouts of the service. There is none for whole requests: blobs take as long as
// they take.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 30 * time.Second
)

func (a *app) serveCommand() *cobra.Command {
	var e entrance
	c := &cobra.Command{
		Use:   "serve",
		Short: "Put the data directory on the network",
		Long: `Serves the OCI endpoint (/v2/), the REST API (/api/v1) and /healthz and /readyz. Protected
environments are written by promotions alone. Where others can reach it, and wherever there
is a token or DATA/access.yaml, whoever comes is asked for a token. stdout: the URL.`,
		Example: `  mlpromote serve --data /srv/mlpromote
  mlpromote serve --data /srv/mlpromote --listen :5443 --tls-cert tls.crt --tls-key tls.key --url https://registry.example.com:5443`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if a.registry != "" {
				return registry.Errorf(registry.CodeInvalid, "serve works on a data directory, not on --registry %s", a.registry)
			}
			return a.serve(c.Context(), e)
		},
	}
	e.flags(c.Flags())
	return c
}

func (a *app) serve(ctx context.Context, e entrance) (err error) {
	if err := e.check(); err != nil {
		return err
	}
	if err := a.create(); err != nil {
		return err
	}
	announce, unlock, err := lockExclusive(a.data)
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
	srv, err := a.server(ctx, e, i)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", e.listen)
	if err != nil {
		return registry.Errorf(registry.CodeUnavailable, "listen on %s: %w", e.listen, err)
	}
	url := e.address(listener)
	if err := announce(url); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := a.ui.result(url, map[string]string{"url": url}); err != nil {
		return errors.Join(err, listener.Close())
	}
	a.ui.note("serving %s; MLPROMOTE_REGISTRY=%s points the verbs here", a.data, url)
	return untilDone(ctx, srv, listener)
}

// untilDone serves until ctx ends, and then lets requests finish.
func untilDone(ctx context.Context, srv *http.Server, listener net.Listener) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		stopped <- srv.Shutdown(grace)
	})
	serve := srv.Serve
	if srv.TLSConfig != nil {
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	err := serve(listener)
	if stop() { // it ended by itself
		return err
	}
	return <-stopped
}
