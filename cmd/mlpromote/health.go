package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/host"
)

// healthTimeout is how long a service may take to say that it is ready.
const healthTimeout = 5 * time.Second

func (a *app) healthCommand() *cobra.Command {
	var config serveConfig
	settings := a.settings(&config)
	c := &cobra.Command{
		Use:   "health",
		Short: "Ask the service on this machine whether it is ready",
		Long: `Asks /readyz of the service that runs with the same settings (flags, MLPROMOTE_* variables,
DATA/serve.yaml), on this machine: for the health check of a container. Exit code 0: it can
answer requests.`,
		Example: "  mlpromote health\n  mlpromote health --listen 127.0.0.1:5080",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := resolve(c, settings, a.getenv, a.getenv("MLPROMOTE_CONFIG")); err != nil {
				return err
			}
			url, err := askReady(c.Context(), config.listenConfig)
			if err != nil {
				return err
			}
			return a.ui.Result("ready", ready{url})
		},
	}
	defineSettings(c, settings)
	for _, s := range settings {
		if !s.shared && s.name != "listen" && s.name != "tls-cert" {
			c.Flag(s.name).Hidden = true // read so that one configuration serves both verbs
		}
	}
	return c
}

// ready is where a service said that it can answer requests.
type ready struct {
	Ready string `json:"ready"`
}

// askReady asks the service that listens as configured whether it is ready, and gives the URL that it
// asked. Errors: CodeUnavailable, with exit code 1, which a container engine takes for unhealthy.
func askReady(ctx context.Context, e listenConfig) (string, error) {
	name, port, err := net.SplitHostPort(e.listen)
	if err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "--listen %q: want HOST:PORT", e.listen)
	}
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "127.0.0.1"
	}
	url, transport := "http://"+net.JoinHostPort(name, port)+"/readyz", &http.Transport{}
	if e.tlsCert != "" {
		if transport.TLSClientConfig, err = host.TrustOwn(e.tlsCert, clock.Now); err != nil {
			return "", registry.Errorf(registry.CodeInvalid, "--tls-cert: %w", err)
		}
		url = "https" + url[len("http"):]
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return "", registry.Lastingf(registry.CodeUnavailable, "the service is not ready: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent && answer.StatusCode != http.StatusOK { // 200: ready, and something to mend
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return "", registry.Lastingf(registry.CodeUnavailable, "the service is not ready: %s answers %s: %s", url, answer.Status, bytes.TrimSpace(said))
	}
	return url, nil
}
