package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/telemetry"
)

// serving is a service while it runs.
type serving struct {
	config    serveConfig
	holder    string // what leases call this process
	logger    *slog.Logger
	telemetry *telemetry.Telemetry
	flush     func(context.Context) error // sends the traces that are left
	reload    func(context.Context)       // reads again who is trusted
	stopping  atomic.Bool
}

// flushTimeout is how long a service that ends waits for the collector of its traces.
const flushTimeout = 5 * time.Second

// newServing makes log, metrics and tracer.
func (a *app) newServing(ctx context.Context, config serveConfig) (*serving, error) {
	if a.verbose {
		config.logLevel = "debug"
	}
	logger, err := telemetry.NewLogger(a.ui.stderr, config.logFormat, config.logLevel)
	if err != nil {
		return nil, err
	}
	s := &serving{config: config, holder: a.holder(), logger: logger, flush: func(context.Context) error { return nil }}
	if a.getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && a.getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		s.telemetry = telemetry.New(a.version, nil)
		return s, nil
	}
	provider, err := telemetry.NewTracing(ctx, a.version)
	if err != nil {
		return nil, err
	}
	s.telemetry = telemetry.New(a.version, provider)
	s.flush = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil { // nothing of the registry is lost
			s.logger.WarnContext(ctx, "traces were not sent", "error", err)
		}
		return nil
	}
	return s, nil
}

// holder is a name that no other replica has. Where one process has the directory to itself
// it is the same after a crash, so that what holds a lease goes on at once.
func (a *app) holder() string {
	if a.database == "" {
		return "the data directory"
	}
	return rand.Text()
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, registry.Errorf(registry.CodeUnavailable, "listen on %s: %w", address, err)
	}
	return listener, nil
}

func (s *serving) server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: s.config.headerTimeout, IdleTimeout: s.config.idleTimeout, MaxHeaderBytes: s.config.maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
	}
}

// background starts what a service does beside answering, and gives what ends it.
func (s *serving) background(ctx context.Context, i *instance) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it ends after the last request
	var running sync.WaitGroup
	stop = func() { cancel(); running.Wait() }
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	running.Go(func() { s.onHangup(ctx, hangups) })
	if s.config.metricsListen != "" {
		listener, err := listen(ctx, s.config.metricsListen)
		if err != nil {
			cancel()
			return nil, err
		}
		s.logger.InfoContext(ctx, "metrics", "url", "http://"+listener.Addr().String()+"/metrics")
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", s.telemetry.Handler())
		srv := s.server(paced(mux, s.config.bodyTimeout))
		running.Go(func() { _ = srv.Serve(listener) })
		context.AfterFunc(ctx, func() { _ = srv.Close() })
	}
	running.Go(func() { s.tryKey(ctx, i) })
	deliverer, err := s.config.hooks.deliverer(i, s.holder, s.logger)
	if err != nil {
		stop()
		return nil, err
	}
	running.Go(func() { deliverer.Run(ctx) })
	if s.config.collect == 0 {
		return stop, nil
	}
	c, err := i.collector(s.config.keep, false)
	if err != nil {
		stop()
		return nil, err
	}
	collections := service.Collections{Collector: c, Leases: i.local.db, Holder: s.holder, Interval: s.config.collect, Tell: s.collected}
	running.Go(func() { collections.Run(ctx) })
	return stop, nil
}

// tryKey tells the operator now, rather than whoever promotes first, that there is no key
// to do it with, or one that its password does not open. To open one takes 64 MiB, which
// the collector would go on to take for what a service needs.
func (s *serving) tryKey(ctx context.Context, i *instance) {
	defer debug.FreeOSMemory()
	if _, err := i.keys.Signer(ctx, registry.RolePromoter); err != nil && ctx.Err() == nil {
		s.logger.WarnContext(ctx, "nothing can be promoted here", "error", err, "hint", strings.Join(registry.Hints(err), "; "))
	}
}

// onHangup reads again what operators change when they send SIGHUP; what it is for is seen
// without it, but for certificates of issuers.
func (s *serving) onHangup(ctx context.Context, hangups chan os.Signal) {
	defer signal.Stop(hangups)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			s.reload(ctx)
		}
	}
}

// collected tells of a collection.
func (s *serving) collected(ctx context.Context, did service.Collected, took time.Duration, err error) {
	s.telemetry.Collected(telemetry.Collection{
		Condemned: did.Condemned, Rescinded: did.Rescinded, Manifests: did.Manifests, Memberships: did.Members,
		Blobs: did.Blobs, Bytes: did.Bytes, Leftovers: did.Leftovers, LeftAlone: len(did.LeftAlone),
	}, took, err)
	for _, left := range did.LeftAlone {
		s.logger.WarnContext(ctx, "collection left a repository alone", "repository", left.Repository, "reason", left.Reason)
	}
	if err != nil {
		s.logger.ErrorContext(ctx, "collection failed", "error", err)
		return
	}
	s.logger.InfoContext(ctx, "collection", "condemned", did.Condemned, "manifests", did.Manifests, "memberships", did.Members,
		"blobs", did.Blobs, "bytes", did.Bytes, "leftovers", did.Leftovers, "duration", took)
}

// untilDone serves until ctx ends. Then the service is not ready any more, a moment later
// takes no more connections, and lets requests finish that are at work.
func (s *serving) untilDone(ctx context.Context, srv *http.Server, listener net.Listener) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		s.stopping.Store(true)
		time.Sleep(s.config.shutdownDelay)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.shutdownGrace)
		defer cancel()
		err := srv.Shutdown(grace)
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.Join(registry.Errorf(registry.CodeUnavailable, "stopped with requests at work that did not finish in %v: their clients have to begin again", s.config.shutdownGrace), srv.Close())
		}
		stopped <- err
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
