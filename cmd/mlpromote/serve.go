package main

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/host"
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
			a.ui.LogAs(config.logFormat)
			if err := config.check(); err != nil {
				return err
			}
			if printConfig {
				return a.ui.Result(effectiveText(all), all)
			}
			return a.serve(c.Context(), config)
		},
	}
	c.Flags().StringVar(&file, "config", "", "file of settings (default MLPROMOTE_CONFIG, else DATA/serve.yaml if it is there)")
	c.Flags().BoolVar(&printConfig, "print-config", false, "print every setting and where it comes from, and serve nothing")
	defineSettings(c, settings)
	return c
}

// servedAt is where a service answers.
type servedAt struct {
	URL string `json:"url"`
}

// serveGCPercent collects the heap of a service more often than that of other verbs: it lives
// long, and what its callers send must not make it large.
const serveGCPercent = 100

func (a *app) serve(ctx context.Context, config serveConfig) (err error) {
	s, err := a.newServing(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.flush(ctx)) }()
	if err := a.create(); err != nil {
		return err
	}
	announce, unlock, err := a.lockServed(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	debug.SetGCPercent(serveGCPercent)
	a.telemetry = s.telemetry
	sv, err := a.openServed(ctx, s)
	if sv != nil {
		defer func() { err = errors.Join(err, sv.here.db.Close()) }()
	}
	if err != nil {
		return err
	}
	if err := sv.here.blobs.verdict.Err(); err != nil {
		s.logger.WarnContext(ctx, "content can be read here and not changed", "error", err, "hint", strings.Join(registry.Hints(err), "; "))
	} else if n, err := sv.here.blobs.uploads.Sweep(ctx); err != nil || n > 0 {
		s.logger.InfoContext(ctx, "removed leftovers of uploads that were broken off", "number", n, "error", err)
	}
	srv, err := sv.server(ctx)
	if err != nil {
		return err
	}
	listener, err := host.Listen(ctx, config.listen)
	if err != nil {
		return err
	}
	url := config.address(listener)
	if err := announce(url); err != nil {
		return errors.Join(err, listener.Close())
	}
	stop, err := sv.background(ctx)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer stop()
	if err := a.ui.Line(url, servedAt{url}); err != nil {
		return errors.Join(err, listener.Close())
	}
	s.logger.InfoContext(ctx, "serving", "data", a.data, "url", url, "hint", "MLPROMOTE_REGISTRY="+url+" points the verbs here")
	shutdown := host.Shutdown{Begin: func() { s.stopping.Store(true) }, Delay: config.shutdownDelay, Grace: config.shutdownGrace}
	return shutdown.Serve(ctx, srv, listener)
}
