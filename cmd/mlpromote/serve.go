package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/service"
)

func (a *app) serveCommand() *cobra.Command {
	var config serveConfig
	var file string
	var printConfig bool
	settings := a.settings(&config)
	c := &cobra.Command{
		Use:   "serve",
		Short: "Put the data directory on the network",
		Long: `Serves the OCI endpoint (/v2/), the REST API (/api/v1) and /healthz and /readyz. Protected
environments are written by promotions alone. Where others can reach it, and wherever there
is a token or DATA/access.yaml, whoever comes is asked for a token. With
--database there may be several services on one data directory, and verbs beside them;
otherwise one has it to itself. stdout: the URL.

What is not a flag is looked for in the environment (--gc-interval is MLPROMOTE_GC_INTERVAL),
then in the file of --config, or serve.yaml in the data directory (gc_interval).`,
		Example: `  mlpromote serve --data /srv/mlpromote
  mlpromote serve --data /srv/mlpromote --listen :5443 --tls-cert tls.crt --tls-key tls.key --url https://registry.example.com:5443
  mlpromote serve --print-config`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if a.registry != "" {
				return registry.Errorf(registry.CodeInvalid, "serve works on a data directory, not on --registry %s", a.registry)
			}
			if file == "" {
				file = a.getenv("MLPROMOTE_CONFIG")
			}
			all, err := resolve(c, settings, a.getenv, file)
			if err != nil {
				return err
			}
			if err := config.check(); err != nil {
				return err
			}
			if printConfig {
				return a.ui.result(effectiveText(all), all)
			}
			return a.serve(c.Context(), config)
		},
	}
	c.Flags().StringVar(&file, "config", "", "file of settings (default MLPROMOTE_CONFIG, else DATA/serve.yaml if it is there)")
	c.Flags().BoolVar(&printConfig, "print-config", false, "print every setting and where it comes from, and serve nothing")
	defineSettings(c, settings)
	return c
}

func (a *app) serve(ctx context.Context, config serveConfig) (err error) {
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
	if n, err := i.local.arriving.Sweep(ctx, now()); err != nil || n > 0 {
		a.ui.note("removed %d leftovers of uploads that were broken off: %v", n, err)
	}
	i.content.tell = func(host, credential string) { a.ui.note("registry %s: using credential %s", host, credential) }
	srv, err := a.server(ctx, config, i)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", config.listen)
	if err != nil {
		return registry.Errorf(registry.CodeUnavailable, "listen on %s: %w", config.listen, err)
	}
	url := config.address(listener)
	if err := announce(url); err != nil {
		return errors.Join(err, listener.Close())
	}
	stop, err := a.background(ctx, i, config)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer stop()
	if err := a.ui.result(url, map[string]string{"url": url}); err != nil {
		return errors.Join(err, listener.Close())
	}
	a.ui.note("serving %s; MLPROMOTE_REGISTRY=%s points the verbs here", a.data, url)
	return untilDone(ctx, config, srv, listener)
}

// background starts what a service does beside answering, and gives what ends it.
func (a *app) background(ctx context.Context, i *instance, config serveConfig) (stop func(), err error) {
	deliverer, err := config.hooks.deliverer(i, slog.New(slog.NewTextHandler(a.ui.stderr, nil)))
	if err != nil {
		return nil, err
	}
	c, err := i.collector(config.keep, false)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	stop = func() { cancel(); running.Wait() }
	running.Go(func() { deliverer.Run(ctx) })
	if config.collect == 0 {
		return stop, nil
	}
	collections := service.Collections{Collector: c, Leases: i.local.db, Holder: rand.Text(), Interval: config.collect, Tell: a.tellCollected}
	running.Go(func() { collections.Run(ctx) })
	return stop, nil
}

// tellCollected says what a collection did, if anything.
func (a *app) tellCollected(_ context.Context, did service.Collected, _ time.Duration, err error) {
	for _, left := range did.LeftAlone {
		a.ui.note("collection: %s is left alone: %s", left.Repository, left.Reason)
	}
	if err != nil {
		a.ui.note("collection: %v", err)
	}
}

// untilDone serves until ctx ends, and then lets requests finish.
func untilDone(ctx context.Context, config serveConfig, srv *http.Server, listener net.Listener) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), config.shutdownGrace)
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
