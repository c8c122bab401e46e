package serving

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/host"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/telemetry"
)

// FlushTimeout is how long a service that ends waits for the collector of its traces.
const FlushTimeout = 5 * time.Second

// New makes log, metrics and tracer.
func New(ctx context.Context, at wiring.Location, config Config, logger *slog.Logger) (*Process, error) {
	s := &Process{config: config, holder: holder(at), logger: logger, flush: func(context.Context) error { return nil }}
	if at.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && at.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		s.telemetry = telemetry.New(at.Version, nil)
		return s, nil
	}
	provider, err := telemetry.NewTracing(ctx, at.Version)
	if err != nil {
		return nil, err
	}
	s.telemetry = telemetry.New(at.Version, provider)
	s.flush = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), FlushTimeout)
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
func holder(at wiring.Location) string {
	if at.Database == "" {
		return "the data directory"
	}
	return rand.Text()
}

// background starts what a service does beside answering, and gives what ends it.
func (sv *Service) background(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it ends after the last request
	s := sv.Process
	var running sync.WaitGroup
	stop = func() { cancel(); running.Wait() }
	running.Go(func() { sv.watch(ctx) })
	if s.config.MetricsListen != "" {
		listener, err := host.Listen(ctx, s.config.MetricsListen)
		if err != nil {
			stop()
			return nil, err
		}
		s.logger.InfoContext(ctx, "metrics", "url", "http://"+listener.Addr().String()+"/metrics")
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", s.telemetry.Handler())
		srv := s.config.timeouts().Server(host.EndStalled(mux, s.config.bodyTimeout), s.logger)
		running.Go(func() { _ = srv.Serve(listener) })
		context.AfterFunc(ctx, func() { _ = srv.Close() })
	}
	if sv.Here.Replica != nil {
		running.Go(func() { sv.Here.Replica.Run(ctx) })
	}
	running.Go(func() { sv.watchHistory(ctx) })
	running.Go(func() { sv.makeCheckpoints(ctx) })
	running.Go(func() { sv.publishTrust(ctx) })
	running.Go(func() { sv.scrubber.Run(ctx) })
	running.Go(func() { sv.operations.Run(ctx) })
	deliverer, err := s.config.hooks.deliverer(sv.Here.DB, s.config.URL, s.holder, s.logger)
	if err != nil {
		stop()
		return nil, err
	}
	running.Go(func() { deliverer.Run(ctx) })
	if s.config.collect == 0 {
		return stop, nil
	}
	c, err := sv.collector()
	if err != nil {
		stop()
		return nil, err
	}
	collections := gc.Schedule{Collector: c, Leases: sv.Here.DB, Holder: s.holder, Interval: s.config.collect, Tell: sv.collected}
	running.Go(func() { collections.Run(ctx) })
	return stop, nil
}

// collector collects by the environments that are in force when a collection begins, if they
// are those that were agreed on.
func (sv *Service) collector() (*gc.Collector, error) {
	c := wiring.CollectorConfig(sv.Here, sv.keeper.InForce().Envs, sv.config.keep, false)
	c.Current = func(ctx context.Context) (policy.Environments, error) {
		g := sv.keeper.InForce()
		agreement := config.Agreement{Own: g.own.Configuration, Agreed: sv.keeper.Agreed}
		if err := sv.Here.Replica.Check(); err != nil {
			return g.Envs, err
		}
		return g.Envs, agreement.Check(ctx, "environments")
	}
	return gc.New(c)
}

// watch looks at the files of the configuration every now and then, and at SIGHUP.
func (sv *Service) watch(ctx context.Context) {
	hangups, looks := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
			}
			select {
			case <-ctx.Done():
				return
			case looks <- struct{}{}:
			}
		}
	}()
	sv.keeper.Run(ctx, sv.config.reload, looks)
}

// collected tells of a collection.
func (sv *Service) collected(ctx context.Context, did gc.Collected, took time.Duration, err error) {
	s := sv.Process
	sv.operations.Collected(runOf(did, took, err))
	s.telemetry.Collected(telemetry.Collection{
		Marked: did.Marked, Unmarked: did.Unmarked, Manifests: did.Manifests, Members: did.Members,
		Blobs: did.Blobs, Bytes: did.Bytes, Leftovers: did.Leftovers, SkippedRepositories: len(did.SkippedRepositories),
	}, took, err)
	for _, left := range did.SkippedRepositories {
		s.logger.WarnContext(ctx, "collection left a repository alone", "repository", left.Repository, "reason", left.Reason)
	}
	if err != nil {
		s.logger.ErrorContext(ctx, "collection failed", "error", err)
		return
	}
	s.logger.InfoContext(ctx, "collection", "marked", did.Marked, "manifests", did.Manifests, "members", did.Members,
		"blobs", did.Blobs, "bytes", did.Bytes, "composed", did.Composed, "composedBytes", did.ComposedBytes, "leftovers", did.Leftovers, "abandoned", did.Intents, "expired", did.Expired, "duration", took)
}
