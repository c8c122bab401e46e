//go:build cgo

package main

import (
	"net/http"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
)

// TestTokensBesideService makes and revokes tokens on the data directory of a service that runs.
// The next request after each command knows of it, also when the service was asked with the same
// token just before.
func TestTokensBesideService(t *testing.T) {
	t.Parallel()
	for _, catalog := range []string{"SQLite", "PostgreSQL"} {
		t.Run(catalog, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			s := &secretive{root: root, http: programtest.Fresh(), Service: programtest.NewService(t, fastProgram(t), root)}
			if catalog == "PostgreSQL" {
				s.Env = append(s.Env, "MLPROMOTE_DATABASE="+pgtest.Shared(t).Database(t))
			}
			s.MustStart(t)
			for _, name := range []string{"first", "second", "third"} {
				token := "Bearer " + strings.TrimSpace(s.run(t, 0, nil, "token", "create", name, "--allow", "read", "--data", s.Dir))
				for range 3 {
					s.send(t, http.MethodGet, "/api/v1/models", token, http.StatusOK)
					s.send(t, http.MethodGet, "/v2/", token, http.StatusOK)
				}
				s.run(t, 0, nil, "token", "revoke", name, "--data", s.Dir)
				s.send(t, http.MethodGet, "/v2/", token, http.StatusUnauthorized)
				s.send(t, http.MethodGet, "/api/v1/models", token, http.StatusUnauthorized)
			}
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
