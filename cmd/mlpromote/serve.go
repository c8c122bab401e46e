package main

import (
	"context"
	"errors"
	"log/slog"
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
	var listen string
	var h hooks
	c := &cobra.Command{
		Use:   "serve",
		Short: "Put the data directory on the network",
		Long: `Serves the OCI endpoint (/v2/), the REST API (/api/v1) and /healthz and /readyz. Protected
environments are written by promotions alone. There is no authentication yet, so only a
loopback address is served. stdout: the URL.`,
		Example: "  mlpromote serve --listen 127.0.0.1:5080 --data /srv/mlpromote",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if a.registry != "" {
				return registry.Errorf(registry.CodeInvalid, "serve works on a data directory, not on --registry %s", a.registry)
			}
			return a.serve(c.Context(), listen, h)
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:5080", "loopback address and port; port 0 takes a free one")
	c.Flags().BoolVar(&h.privateUnsafe, "private-webhooks-unsafe", false, "let webhooks have addresses of this machine and network: who registers one can then reach what only this machine should")
	return c
}

func (a *app) serve(ctx context.Context, address string, h hooks) (err error) {
	if err := loopback(address); err != nil {
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
	handler, err := a.handler(ctx, i, h)
	if err != nil {
		return err
	}
	stop, err := h.start(ctx, i, slog.New(slog.NewTextHandler(a.ui.stderr, nil)))
	if err != nil {
		return err
	}
	defer stop()
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
