//go:build cgo

package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// degradedBy is what /readyz says beside being ready; empty: nothing.
func degradedBy(t *testing.T, s *programtest.Service) string {
	t.Helper()
	answer, body := programtest.Send(t, programtest.Fresh(), http.MethodGet, s.URL+"/readyz")
	switch answer.StatusCode {
	case http.StatusOK:
		return string(body)
	case http.StatusNoContent:
		return ""
	}
	t.Errorf("/readyz: got %s, want that the service is ready\n%s", answer.Status, body)
	return ""
}

// reloaded is a service with keys for each role, and a job of its client.
type reloaded struct {
	*programtest.Service
	*programtest.Job
}

// separateKeys is environments.yaml with a key for each role.
const separateKeys = `version: 1
registry: local
environments:
  staging:
  prod: {from: staging}
trust:
  - {key: keys/local.pub, roles: [builder, approver], resources: ["oci://local/"]}
  - {key: keys/verifier.pub, roles: [verifier], resources: ["oci://local/"]}
  - {key: keys/promoter.pub, roles: [promoter], resources: ["oci://local/"]}
`

func newReloaded(t *testing.T, flags ...string) *reloaded {
	t.Helper()
	root := t.TempDir()
	r := &reloaded{Service: programtest.NewService(t, fastProgram(t), root)}
	r.Service.Flags = flags
	r.Job = programtest.NewJob(t, r.Service.Program, filepath.Join(root, "digits"), programtest.Environment(root, programtest.Cache(t))...)
	keys := filepath.Join(r.Service.Dir, "keys")
	for _, args := range [][]string{nil, {"--role", "verifier"}, {"--role", "promoter"}} {
		r.Must(append([]string{"key", "generate", "--keys", keys}, args...)...)
	}
	r.write(t, separateKeys)
	r.MustStart(t)
	if err := r.ShareKeys(); err != nil {
		t.Fatal(err)
	}
	r.Job.Env = append(r.Job.Env, "MLPROMOTE_REGISTRY="+r.URL, "MLPROMOTE_DATA="+r.Client)
	return r
}

// write replaces environments.yaml of the service as an editor does.
func (r *reloaded) write(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join(r.Service.Dir, "environments.yaml")
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

func (r *reloaded) resolves() bool {
	return r.Command("resolve", programtest.Model, "--env", "prod").Run() == nil
}

// TestKeyIsRevokedWhileServed takes trust from keys of a running service: what they signed
// stops to count without a restart, and a file with a mistake changes nothing.
func TestKeyIsRevokedWhileServed(t *testing.T) {
	t.Parallel()
	r := newReloaded(t, "--reload-interval", "20ms")
	r.Promote()
	if !r.resolves() {
		t.Fatal("prod has no engine for this machine")
	}

	revoked := strings.Replace(separateKeys, "promoter.pub, ", "promoter.pub, state: revoked, since: 2026-11-21T09:00:00Z, ", 1)
	r.write(t, revoked)
	programtest.Eventually(t, "the summary of a revoked promoter counts no more", func() bool { return !r.resolves() })
	if said := r.Refused(4, "resolve", programtest.Model, "--env", "prod"); !strings.Contains(said, "trusted promoter") {
		t.Errorf("resolve says %s, want that no trusted promoter let it in", said)
	}
	programtest.Eventually(t, "/readyz tells that nothing can be promoted", func() bool { return degradedBy(t, r.Service) != "" })

	r.write(t, separateKeys)
	programtest.Eventually(t, "the key is trusted again", r.resolves)

	r.write(t, strings.Replace(revoked, "roles: [promoter]", "rolls: [promoter]", 1))
	programtest.Eventually(t, "/readyz tells of a mistake", func() bool { return strings.Contains(degradedBy(t, r.Service), "cannot be used") })
	if !r.resolves() {
		t.Error("a file with a mistake took an engine away")
	}
	r.Must("health", "--data", r.Service.Dir, "--listen", r.Host())
	r.write(t, separateKeys)
	programtest.Eventually(t, "/readyz is content again", func() bool { return degradedBy(t, r.Service) == "" })

	replay := r.Command("policy", "replay", "--data", r.Service.Dir)
	replay.Env = append(replay.Env, "MLPROMOTE_REGISTRY=")
	if out, err := replay.CombinedOutput(); err != nil {
		t.Errorf("policy replay beside the service: %v\n%s", err, out)
	}

	r.Bump()
	r.Must("build")
	r.Must("verify")
	r.write(t, strings.Replace(separateKeys, "verifier.pub, ", "verifier.pub, state: revoked, since: 2026-11-21T09:00:00Z, ", 1))
	programtest.Eventually(t, "the report of a revoked verifier counts no more", func() bool {
		out, _ := r.Command("promote", "--dry-run").Output()
		return strings.Contains(string(out), "UNMET")
	})
	r.Refused(4, "promote")
	if history := r.Must("history", "list"); strings.Count(history, " configure ") != 3 {
		t.Errorf("the history is\n%s\nwant three rows of changes that were in force", history)
	}
	if err := r.Service.Stop(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"another configuration is in force", "(keys/promoter.pub) is trusted as promoter for oci://local/; the key is revoked", "unknown key \\\"rolls\\\"",
	} {
		if !strings.Contains(r.Said(), want) {
			t.Errorf("the log does not say %q:\n%s", want, r.Said())
		}
	}
}

// TestHangupReloads needs no interval.
func TestHangupReloads(t *testing.T) {
	t.Parallel()
	r := newReloaded(t, "--reload-interval", "0s")
	r.Promote()
	r.write(t, strings.Replace(separateKeys, "promoter.pub, ", "promoter.pub, state: revoked, since: 2026-11-21T09:00:00Z, ", 1))
	if !r.resolves() {
		t.Error("a change was taken without a signal")
	}
	if err := r.Process().Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	programtest.Eventually(t, "the change is taken", func() bool { return !r.resolves() })
}

// TestUntrustedPromoterIsTold runs a service whose own key the environments do not trust.
func TestUntrustedPromoterIsTold(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := programtest.NewService(t, fastProgram(t), root)
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(separateKeys, "roles: [promoter]", "roles: [approver]", 1)
	if err := os.WriteFile(filepath.Join(s.Dir, "environments.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.MustStart(t)
	if got := degradedBy(t, s); !strings.Contains(got, "cannot work") {
		t.Errorf("/readyz says %q, want that something cannot work", got)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	const line = `- {key: keys/local.pub, roles: [promoter], resources: [\"oci://local/prod/\"]}`
	if !strings.Contains(s.Said(), "nothing can be promoted to prod: this process signs promotions with key") || !strings.Contains(s.Said(), line) {
		t.Errorf("the log does not say which line to add, %s:\n%s", line, s.Said())
	}
}
