package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/registry"
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
			return a.ui.result("ready", ready{url})
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
	host, port, err := net.SplitHostPort(e.listen)
	if err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "--listen %q: want HOST:PORT", e.listen)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	url, transport := "http://"+net.JoinHostPort(host, port)+"/readyz", &http.Transport{}
	if e.tlsCert != "" {
		if transport.TLSClientConfig, err = pinned(e.tlsCert); err != nil {
			return "", err
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

// pinned trusts the certificate in a file, whatever its names: it is the service's own, and
// 127.0.0.1 is rarely among them. While that is not valid the service goes on with the one
// before, which then is trusted too: to restart it would make things worse. Errors: CodeInvalid.
func pinned(certFile string) (*tls.Config, error) {
	text, err := os.ReadFile(certFile)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "--tls-cert: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "--tls-cert %s: want a certificate in PEM", certFile)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "--tls-cert %s: %w", certFile, err)
	}
	refused := inTime(leaf, now()) != nil
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection accepts one certificate alone, and nothing secret is sent
		VerifyConnection: func(s tls.ConnectionState) error {
			if !refused && (len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, block.Bytes)) {
				return errors.New("it shows another certificate than " + certFile)
			}
			return nil
		},
	}, nil
}
