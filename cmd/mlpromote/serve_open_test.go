//go:build cgo

package main

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
)

// wantStatus sends a request without a token.
func wantStatus(t *testing.T, s *programtest.Service, when, method, path string, want int) {
	t.Helper()
	if answer, body := programtest.Send(t, programtest.Fresh(), method, s.URL+path); answer.StatusCode != want {
		t.Errorf("%s, %s %s: got %s, want %d\n%s", when, method, path, answer.Status, want, body)
	}
}

// TestOpenServiceCloses runs services on loopback that ask nobody who he is, and lets somebody
// say who may come in, in each way that there is. The next request without a token is refused.
func TestOpenServiceCloses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		postgres bool
		closes   func(t *testing.T, s *secretive)
	}{
		"a token of another process": {false, func(t *testing.T, s *secretive) {
			s.run(t, 0, nil, "token", "create", "ci", "--allow", "read", "--data", s.Dir)
			if said := s.said.String(); !strings.Contains(said, "the first token") {
				t.Errorf("token create does not say that the service asks everybody from now on: %s", said)
			}
		}},
		"a token of another process, on PostgreSQL": {true, func(t *testing.T, s *secretive) {
			s.run(t, 0, nil, "token", "create", "ci", "--allow", "read", "--data", s.Dir)
		}},
		"a token over REST": {false, func(t *testing.T, s *secretive) {
			s.run(t, 0, nil, "token", "create", "ci", "--allow", "read", "--registry", s.URL, "--data", s.Client)
		}},
		"a token that is revoked": {false, func(t *testing.T, s *secretive) {
			s.run(t, 0, nil, "token", "create", "ci", "--allow", "read", "--data", s.Dir)
			s.run(t, 0, nil, "token", "revoke", "ci", "--data", s.Dir)
		}},
		"issuers":                {false, func(t *testing.T, s *secretive) { s.trust(t, issuersFile) }},
		"issuers with a mistake": {false, func(t *testing.T, s *secretive) { s.trust(t, "issuers: [") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			s := &secretive{root: root, Service: programtest.NewService(t, fastProgram(t), root)}
			if c.postgres {
				s.Env = append(s.Env, "MLPROMOTE_DATABASE="+pgtest.Shared(t).Database(t))
			}
			s.MustStart(t)
			wantStatus(t, s.Service, "before", http.MethodPost, "/v2/staging/x/blobs/uploads/", http.StatusAccepted)
			wantStatus(t, s.Service, "before", http.MethodGet, "/api/v1/models", http.StatusOK)
			c.closes(t, s)
			wantStatus(t, s.Service, "after", http.MethodPost, "/v2/staging/x/blobs/uploads/", http.StatusUnauthorized)
			wantStatus(t, s.Service, "after", http.MethodGet, "/api/v1/models", http.StatusUnauthorized)
			wantStatus(t, s.Service, "after", http.MethodGet, "/v2/", http.StatusUnauthorized)
			wantStatus(t, s.Service, "after", http.MethodGet, "/metrics", http.StatusUnauthorized)
			wantStatus(t, s.Service, "after", http.MethodGet, "/healthz", http.StatusNoContent)
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			if said := s.Said(); !strings.Contains(said, "until there is a token") || !strings.Contains(said, "from now on every caller needs a token") {
				t.Errorf("the service does not say that it was open and closed: %s", said)
			}
		})
	}
}

// TestOpenStreamCloses follows the events of an open service. After the first token nothing more
// is told.
func TestOpenStreamCloses(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := &secretive{root: root, Service: programtest.NewService(t, fastProgram(t), root)}
	s.MustStart(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := programtest.Fresh().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	s.run(t, 0, nil, "token", "create", "ci", "--allow", "read", "--data", s.Dir)
	change := "registry: local\nenvironments: {staging: , prod: {from: staging}, canary: {from: staging}}\n" +
		"trust: [{key: keys/local.pub, roles: [builder, verifier, approver, promoter], resources: [\"oci://local/\"]}]\n"
	if err := errors.Join(os.WriteFile(filepath.Join(s.Dir, "environments.yaml"), []byte(change), 0o600),
		s.Process().Signal(syscall.SIGHUP)); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data:") {
			t.Fatalf("a stream that was opened before the first token was told after it: %s", lines.Text())
		}
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if said := s.Said(); !strings.Contains(said, "stream of events ended") {
		t.Errorf("the service does not say that it ended a stream: %s", said)
	}
}

const issuersFile = "issuers: [{issuer: https://gitlab.example.com, audience: x, rules: [{match: {sub: x}, grants: [{allow: [read], environment: '*', model: '**'}]}]}]\n"

// trust writes access.yaml.
func (s *secretive) trust(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir, "access.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestServiceRefusesOtherSites sends to a service on loopback what a page of another site can
// make a browser send: under a name of its own that points here, and across sites.
func TestServiceRefusesOtherSites(t *testing.T) {
	t.Parallel()
	s := programtest.Serve(t, fastProgram(t), "listen: 127.0.0.1:0\nhosts: registry.internal\n")
	for name, c := range map[string]struct {
		host, site string
		want       map[string]int // status by method and path
	}{
		"a client": {s.Host(), "", map[string]int{
			"POST /v2/staging/x/blobs/uploads/": http.StatusAccepted, "GET /api/v1/models": http.StatusOK, "GET /metrics": http.StatusOK}},
		"by a name of --hosts": {"registry.internal:5080", "", map[string]int{"GET /api/v1/models": http.StatusOK}},
		"across sites": {s.Host(), "cross-site", map[string]int{
			"POST /v2/staging/x/blobs/uploads/": http.StatusForbidden, "POST /api/v1/models/x/resolve": http.StatusForbidden, "PUT /v2/staging/x/manifests/1": http.StatusForbidden,
			"DELETE /v2/staging/x/manifests/1": http.StatusForbidden}},
		"a name that was rebound": {"evil.example", "same-origin", map[string]int{
			"POST /v2/staging/x/blobs/uploads/": http.StatusForbidden, "GET /v2/": http.StatusForbidden, "GET /api/v1/models": http.StatusForbidden, "GET /metrics": http.StatusForbidden}},
		"a probe": {"10.0.0.1", "", map[string]int{"GET /healthz": http.StatusNoContent, "GET /readyz": http.StatusNoContent, "GET /api/v1/models": http.StatusForbidden}},
	} {
		for request, want := range c.want {
			method, path, _ := strings.Cut(request, " ")
			r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = c.host
			if c.site != "" {
				r.Header.Set("Sec-Fetch-Site", c.site)
			}
			answer, err := programtest.Fresh().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s: %s: got %s, want %d", name, request, answer.Status, want)
			}
		}
	}
}
