package client_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/client"
)

// A service that this machine does not trust, or that speaks no TLS, is none to ask again.
func TestUntrustedService(t *testing.T) {
	t.Parallel()
	nothing := http.NotFoundHandler()
	secure, open, wary := httptest.NewTLSServer(nothing), httptest.NewServer(nothing), httptest.NewUnstartedServer(nothing)
	wary.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	wary.StartTLS()
	for _, s := range []*httptest.Server{secure, open, wary} {
		t.Cleanup(s.Close)
	}
	for name, c := range map[string]struct {
		url  string
		http *http.Client
		want int
	}{
		"unknown CA":         {secure.URL, new(http.Client), registry.ExitFailed},
		"no TLS":             {strings.Replace(open.URL, "http:", "https:", 1), new(http.Client), registry.ExitFailed},
		"wants certificates": {wary.URL, wary.Client(), registry.ExitFailed},
		"nobody listens":     {"https://127.0.0.1:1", new(http.Client), registry.ExitAgain},
	} {
		speak, err := client.New(client.Config{URL: c.url, HTTP: c.http, Content: noContent{}, Backoff: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, err = speak.Environments(t.Context())
		if got := registry.ExitCode(err); got != c.want || registry.CodeOf(err) != registry.CodeUnavailable {
			t.Errorf("%s: exit code %d, error %v; want %d and CodeUnavailable", name, got, err, c.want)
		}
	}
}
