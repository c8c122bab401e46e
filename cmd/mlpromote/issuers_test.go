//go:build cgo

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// TestIssuersAreTrusted lets in CI by a token that its issuer gave it, and by nothing else.
func TestIssuersAreTrusted(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issuer := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "k", Algorithm: "ES256"}}}
	listening := httptest.NewServer(issuer)
	t.Cleanup(listening.Close)
	issuer.SetIssuer(listening.URL)
	token := func(project string) string {
		return oidctest.SignIDToken(key, "k", "ES256", fmt.Sprintf(
			`{"iss":%q,"aud":"registry","sub":"job","project_path":%q,"exp":%d}`, listening.URL, project, time.Now().Add(time.Minute).Unix()))
	}
	root := t.TempDir()
	s := &secretive{root: root, Service: programtest.NewService(t, fastProgram(t), root)}
	file := filepath.Join(s.Dir, "access.yaml")
	good := "issuers:\n  - issuer: " + listening.URL + "\n    audience: registry\n    rules:\n      - match: {project_path: ml/*}\n" +
		"        grants: [{allow: [read], environment: '*', model: '**'}]\n"
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.Replace(good, "audience", "audiense", 1))
	s.run(t, 2, nil, "serve", "--listen", "127.0.0.1:0", "--data", s.Dir)
	if said := s.said.String(); !strings.Contains(said, file+":3:5: unknown key \"audiense\"") {
		t.Errorf("a mistake in the file is told as %s", said)
	}
	write(good)
	s.Flags = []string{"--reload-interval", "20ms"}
	s.MustStart(t)
	for _, c := range []struct {
		token string
		code  int
		says  string
	}{
		{token("ml/vision"), 0, ""}, {token("web/shop"), 7, "no rule in access.yaml matches it"}, {"", 7, "none was sent"},
		{strings.TrimSuffix(token("ml/vision"), "A") + "AA", 7, "is refused"},
	} {
		s.said.Reset()
		s.run(t, c.code, []string{"MLPROMOTE_TOKEN=" + c.token}, "list", "--registry", s.URL, "--data", s.Client)
		if !strings.Contains(s.said.String(), c.says) {
			t.Errorf("the verb says %s, want %q", s.said.String(), c.says)
		}
	}
	list := func(code int, token string) {
		t.Helper()
		s.run(t, code, []string{"MLPROMOTE_TOKEN=" + token}, "list", "--registry", s.URL, "--data", s.Client)
	}
	letIn := func(token string) bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/heads", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := programtest.Fresh().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return errors.Join(answer.Body.Close()) == nil && answer.StatusCode == http.StatusOK
	}
	write(strings.Replace(good, "ml/*", "web/*", 1)) // another rule, while it is served
	programtest.Eventually(t, "the new rule lets in", func() bool { return letIn(token("web/shop")) })
	list(7, token("ml/vision"))
	write("issuers: [")
	programtest.Eventually(t, "a mistake is noticed", func() bool { return degradedBy(t, s.Service) != "" })
	list(0, token("web/shop"))
	write(good + "# mended\n")
	programtest.Eventually(t, "the mended file lets in", func() bool { return letIn(token("ml/vision")) })
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	programtest.Eventually(t, "no file lets nobody in", func() bool { return !letIn(token("ml/vision")) })
	write(good)
	if err := s.Process().Signal(syscall.SIGHUP); err != nil { // which ends others
		t.Fatal(err)
	}
	programtest.Eventually(t, "the file is back", func() bool { return letIn(token("ml/vision")) })
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if log := s.Said(); !strings.Contains(log, "the files of the configuration cannot be used: the previous ones stay in force") ||
		!strings.Contains(log, "access.yaml:1:") {
		t.Errorf("the service does not say what is wrong with the file: %s", log)
	}
	if log := s.Said(); !strings.Contains(log, "in use: 0 tokens; trusted: 1 issuer") {
		t.Errorf("the service says %s", log)
	}
}
