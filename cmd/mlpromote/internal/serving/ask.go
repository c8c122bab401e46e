package serving

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/host"
)

// healthTimeout is how long a service may take to say that it is ready.
const healthTimeout = 5 * time.Second

// AskReady asks the service that listens as configured whether it is ready, and gives the URL that it
// asked. Errors: CodeUnavailable, with exit code 1, which a container engine takes for unhealthy.
func AskReady(ctx context.Context, e ListenConfig) (string, error) {
	name, port, err := net.SplitHostPort(e.Listen)
	if err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "--listen %q: want HOST:PORT", e.Listen)
	}
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "127.0.0.1"
	}
	url, transport := "http://"+net.JoinHostPort(name, port)+"/readyz", &http.Transport{}
	if e.TLSCert != "" {
		if transport.TLSClientConfig, err = host.TrustOwn(e.TLSCert, clock.Now); err != nil {
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
