//go:build cgo

package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
)

// replica is one of several services on a database and a data directory, with a policy
// folder of its own.
type replica struct {
	*programtest.Service
	policy string
}

// write replaces a file of the policy folder.
func (r replica) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(r.policy, name)
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

// is reports whether the replica is as ready as that.
func (r replica) is(t *testing.T, status int, says string) bool {
	t.Helper()
	answer, body := programtest.Send(t, programtest.Fresh(), http.MethodGet, r.URL+"/readyz")
	return answer.StatusCode == status && strings.Contains(string(body), says)
}

func (r replica) wantReady(t *testing.T, when string, status int, says string) {
	t.Helper()
	programtest.Eventually(t, fmt.Sprintf("%s, /readyz says %d %q", when, status, says), func() bool { return r.is(t, status, says) })
}

// wantWrites wants that the replica takes what changes something, or refuses all of it.
func (r replica) wantWrites(t *testing.T, when string, takes bool) {
	t.Helper()
	push := map[bool]int{true: http.StatusAccepted, false: http.StatusServiceUnavailable}[takes]
	wantStatus(t, r.Service, when, http.MethodPost, "/v2/staging/x/blobs/uploads/", push)
	const promotions = "/api/v1/models/" + programtest.Model + "/promotions"
	for path, body := range map[string]string{promotions: `{}`, "/api/v1/models/" + programtest.Model + "/holds": `{"environment":"prod","reason":"x"}`} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		answer, err := programtest.Fresh().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if refused := answer.StatusCode == http.StatusServiceUnavailable; refused == takes {
			t.Errorf("%s, POST %s: got %s, want that it is refused with 503: %t", when, path, answer.Status, !takes)
		}
	}
	resolve := "/api/v1/models/" + programtest.Model + "/resolve?environment=prod&arch=amd64"
	if answer, body := programtest.Send(t, programtest.Fresh(), http.MethodGet,
		r.URL+resolve); (answer.StatusCode == http.StatusServiceUnavailable) == takes {
		t.Errorf("%s, resolve: got %s, want that it is refused with 503: %t\n%s", when, answer.Status, !takes, body)
	}
	wantStatus(t, r.Service, when, http.MethodGet, "/api/v1/heads", http.StatusOK)
	wantStatus(t, r.Service, when, http.MethodGet, "/api/v1/history", http.StatusOK)
}

// TestReplicasAgree gives one of two replicas other files than the other.
func TestReplicasAgree(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	database := "MLPROMOTE_DATABASE=" + pgtest.Shared(t).Database(t)
	keys := filepath.Join(root, "served", "keys")
	start := func(name, text string) replica {
		r := replica{programtest.NewService(t, fastProgram(t), root, database), filepath.Join(root, name)}
		r.Flags = []string{"--reload-interval", "20ms", "--policy-dir", r.policy}
		if err := os.MkdirAll(r.policy, 0o700); err != nil {
			t.Fatal(err)
		}
		r.write(t, "environments.yaml", strings.ReplaceAll(text, "keys/", keys+"/"))
		r.MustStart(t)
		return r
	}
	const one = `registry: local
environments:
  staging:
  prod: {from: staging}
trust:
  - {key: keys/local.pub, roles: [builder, verifier, approver, promoter], resources: ["oci://local/"]}
`
	other := strings.Replace(one, "from: staging", "from: staging, require: [parity]", 1)
	full := func(text string) string { return strings.ReplaceAll(text, "keys/", keys+"/") }
	a, b := start("a", one), start("b", one)
	for _, r := range []replica{a, b} {
		r.wantReady(t, "with the same files", http.StatusNoContent, "")
		r.wantWrites(t, "with the same files", true)
	}

	// A change waits, and what was agreed on goes on.
	a.write(t, "environments.yaml", full(other))
	a.wantReady(t, "with a change", http.StatusOK, "waits for being adopted")
	a.wantWrites(t, "with a change", true)
	verb := func(r replica, args ...string) string {
		t.Helper()
		s := &secretive{root: root, Service: r.Service}
		return s.run(t, 0, []string{"MLPROMOTE_REGISTRY=" + r.URL, "MLPROMOTE_DATABASE="}, args...)
	}
	if status := verb(a, "configuration", "status"); !strings.HasPrefix(status, "pending\n") ||
		!strings.Contains(status, "no longer: environment prod requires signature") {
		t.Errorf("configuration status says %s, want pending, with the change", status)
	}

	// Adopted, it holds for who has it, and stops who does not.
	verb(a, "configuration", "adopt")
	a.wantReady(t, "with what was adopted", http.StatusNoContent, "")
	a.wantWrites(t, "with what was adopted", true)
	b.wantReady(t, "left behind", http.StatusServiceUnavailable, "not the agreed one")
	b.wantWrites(t, "left behind", false)
	if status := verb(b, "configuration", "status"); !strings.HasPrefix(status, "differs\n") {
		t.Errorf("configuration status says %s, want differs", status)
	}
	b.write(t, "environments.yaml", full(other))
	b.wantReady(t, "with the files at last", http.StatusNoContent, "")
	b.wantWrites(t, "with the files at last", true)

	// One that starts with other files says so, and so do others of which they are adopted.
	c := start("c", one)
	c.wantReady(t, "started with other files", http.StatusServiceUnavailable, "not the agreed one")
	c.wantWrites(t, "started with other files", false)
	s := &secretive{root: root, Service: c.Service}
	s.run(t, 0, []string{database}, "configuration", "adopt", "--data", c.Dir, "--policy-dir", c.policy)
	c.wantReady(t, "adopted on the database", http.StatusNoContent, "")
	for _, r := range []replica{a, b} {
		r.wantReady(t, "left behind", http.StatusServiceUnavailable, "not the agreed one")
	}
	if rows := verb(c, "history", "list"); strings.Count(rows, " configure ") != 2 {
		t.Errorf("the history is\n%s\nwant two rows of changes", rows)
	}

	// Verbs beside them agree too, or change and resolve nothing.
	if said := s.refused(t, 1, []string{database}, "resolve", programtest.Model, "--env", "prod", "--data", a.Dir,
		"--policy-dir", a.policy); !strings.Contains(said, "differs from what the services of this catalog agreed on") {
		t.Errorf("a verb with other files says %s", said)
	}

	// Who is let in by issuers is agreed on as well.
	b.write(t, "environments.yaml", full(one))
	b.wantReady(t, "with the files of c", http.StatusNoContent, "")
	c.write(t, "access.yaml", issuersFile)
	c.wantReady(t, "with another access.yaml", http.StatusOK, "waits for being adopted")
}

// refused runs a verb, which must end with a code, and gives what it said.
func (s *secretive) refused(t *testing.T, code int, env []string, args ...string) string {
	t.Helper()
	s.said.Reset()
	s.run(t, code, env, args...)
	return s.said.String()
}
