// Package host runs the HTTP server of the registry service: it listens, shows a certificate that may be
// renewed, ends stalled connections, bounds the memory of request bodies, and stops without breaking requests.
package host

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Listen listens on HOST:PORT; port 0 takes a free one. Errors: CodeUnavailable.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, registry.Lastingf(registry.CodeUnavailable, "listen on %s: %w", address, err)
	}
	return listener, nil
}

// Timeouts bound the duration of a connection's steps. Each must be positive.
type Timeouts struct {
	Header         time.Duration // for the headers of a request
	Idle           time.Duration // between two requests
	MaxHeaderBytes int
}

// Server returns a server that logs its errors as warnings.
func (t Timeouts) Server(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: t.Header, IdleTimeout: t.Idle, MaxHeaderBytes: t.MaxHeaderBytes,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

// Shutdown configures how a server stops.
type Shutdown struct {
	Begin func()        // called first, so that the service can report that it is not ready
	Delay time.Duration // from then until connections are refused
	Grace time.Duration // after that, for requests to finish
}

// Serve serves until ctx ends, with TLS if srv.TLSConfig is set, and then stops as s configures. Errors: CodeUnavailable
// if requests did not finish within the grace period; whatever keeps the server from accepting connections.
func (s Shutdown) Serve(ctx context.Context, srv *http.Server, listener net.Listener) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { stopped <- s.stop(ctx, srv) })
	serve := srv.Serve
	if srv.TLSConfig != nil {
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	err := serve(listener)
	if stop() { // it failed before ctx ended
		return err
	}
	return <-stopped
}

func (s Shutdown) stop(ctx context.Context, srv *http.Server) error {
	s.Begin()
	time.Sleep(s.Delay)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Grace)
	defer cancel()
	err := srv.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		const text = "stopped with requests at work that did not finish in %v: their clients have to begin again"
		err = errors.Join(registry.Lastingf(registry.CodeUnavailable, text, s.Grace), srv.Close())
	}
	return err
}
