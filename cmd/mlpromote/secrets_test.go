//go:build cgo

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

// secretive is a service over TLS with a token of an administrator, and all that it and
// its clients have said.
type secretive struct {
	*programtest.Service
	root    string
	http    *http.Client
	token   string
	said    bytes.Buffer
	secrets map[string]string
}

const keyPassword = "hunter2-of-the-keys"

func newSecretive(t *testing.T) *secretive {
	t.Helper()
	root := t.TempDir()
	s := &secretive{
		root: root, secrets: map[string]string{"password of the keys": keyPassword},
		Service: programtest.NewService(t, fastProgram(t), root, "COSIGN_PASSWORD="+keyPassword),
	}
	if err := registrytest.Certificate(filepath.Join(root, "tls"), "x"); err != nil {
		t.Fatal(err)
	}
	s.Flags = []string{"--verbose", "--tls-cert", filepath.Join(root, "tls", "tls.crt"), "--tls-key", filepath.Join(root, "tls", "tls.key")}
	s.token = strings.TrimSpace(s.run(t, 0, nil, "token", "create", "admin", "--allow", "administer", "--data", s.Dir))
	s.said.Reset() // a token is shown when it is made
	s.MustStart(t)
	ca, err := os.ReadFile(filepath.Join(root, "tls", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	s.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(s.http.CloseIdleConnections)
	return s
}

// run runs a verb, which must end with a code, and gives its stdout.
func (s *secretive) run(t *testing.T, code int, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.Program, append(args, "--verbose")...)
	cmd.Dir = s.root
	cmd.Env = append(append(os.Environ(), s.Env...), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var ended *exec.ExitError
	if got := cmd.ProcessState.ExitCode(); got != code || err != nil && !errors.As(err, &ended) {
		t.Fatalf("mlpromote %s: %v, want exit code %d\n%s%s", strings.Join(args, " "), err, code, &stdout, &stderr)
	}
	s.said.Write(stdout.Bytes())
	s.said.Write(stderr.Bytes())
	return stdout.String()
}

// send sends a request and gives the body of the answer.
func (s *secretive) send(t *testing.T, method, path, authorization string, status int) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := s.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		t.Fatalf("%s %s: %s, want %d (error %v)\n%s", method, path, response.Status, status, err, body)
	}
	if path != authn.TokenPath+"?ok" {
		s.said.Write(body)
		fmt.Fprintln(&s.said, response.Header)
	}
	return body
}

// TestNoSecretIsSaid sends credentials of every kind, good and bad, to a service that logs
// at debug level, and looks for them in all that service and clients say.
func TestNoSecretIsSaid(t *testing.T) {
	t.Parallel()
	s := newSecretive(t)
	s.secrets["token"] = s.token[len(s.token)-52:]
	last := "a"
	if strings.HasSuffix(s.token, last) {
		last = "b"
	}
	wrong := s.token[:len(s.token)-1] + last
	s.secrets["token with a mistake"] = wrong[len(wrong)-52:]
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	s.secrets["password"], s.secrets["user"] = basic("me", s.token)[6:], basic(s.token, "me")[6:]

	var answer struct{ Token string }
	if err := json.Unmarshal(s.send(t, "GET", authn.TokenPath+"?ok", basic("me", s.token), 200), &answer); err != nil || answer.Token == "" {
		t.Fatalf("no token: %v", err)
	}
	derived := answer.Token
	s.secrets["token of a client"] = derived[strings.LastIndexByte(derived, '.')+1:]
	forged := derived[:strings.LastIndexByte(derived, '.')+1] + strings.Repeat("A", 43)

	for _, c := range []struct {
		authorization string
		api, oci      int
	}{
		{"", 401, 401}, {"Bearer " + s.token, 200, 200}, {basic("me", s.token), 200, 200},
		{"Bearer " + derived, 403, 200}, // it asked for nothing
		{"Bearer " + wrong, 401, 401}, {basic("me", wrong), 401, 401}, {basic(s.token, "me"), 401, 401}, {"Bearer " + forged, 401, 401}, {s.token, 401, 401},
		{"Token " + s.token, 401, 401}, {"Bearer " + s.token + "," + s.token, 401, 401}, {"Bearer x" + s.token, 401, 401}, {"Bearer " + derived + "." + s.token, 401, 401},
	} {
		s.send(t, "GET", "/api/v1/heads", c.authorization, c.api)
		s.send(t, "GET", "/v2/", c.authorization, c.oci)
		if c.oci == 401 {
			s.send(t, "GET", authn.TokenPath, c.authorization, 401)
			s.send(t, "PUT", "/v2/staging/x/manifests/1", c.authorization, 401)
		}
	}
	s.send(t, "GET", authn.TokenPath+"?scope="+url.QueryEscape(s.token), "Bearer "+derived, 401)
	s.send(t, "GET", "/api/v1/heads?token="+s.token, "", 401)
	s.send(t, "PUT", "/v2/prod/x/manifests/1", "Bearer "+s.token, 403)

	ca := "MLPROMOTE_CA=" + filepath.Join(s.root, "tls", "ca.pem")
	docker := filepath.Join(s.root, "docker")
	for _, c := range []struct {
		code int
		env  []string
	}{
		{0, []string{ca, "MLPROMOTE_TOKEN=" + s.token}}, {7, []string{ca, "MLPROMOTE_TOKEN=" + wrong}}, {7, []string{ca}},
		{1, []string{"MLPROMOTE_TOKEN=" + s.token}}, {2, []string{ca, "MLPROMOTE_TOKEN=" + s.token + " " + s.token}},
		{0, []string{ca, "DOCKER_CONFIG=" + s.dockerConfig(t, docker, s.token)}}, {7, []string{ca, "DOCKER_CONFIG=" + s.dockerConfig(t, docker+"2", wrong)}},
	} {
		s.run(t, c.code, c.env, "list", "--registry", s.URL, "--data", s.Client)
	}
	s.run(t, 0, nil, "token", "list", "--data", s.Dir)
	s.run(t, 0, nil, "token", "list", "--data", s.Dir, "--output", "json")
	s.run(t, 0, nil, "token", "revoke", "admin", "--data", s.Dir)
	s.send(t, "GET", "/api/v1/heads", "Bearer "+derived, 401) // at once
	s.send(t, "GET", "/v2/", "Bearer "+derived, 401)
	s.send(t, "GET", "/api/v1/heads", "Bearer "+s.token, 401)
	s.silent(t)
}

// dockerConfig writes a docker config with a token as password.
func (s *secretive) dockerConfig(t *testing.T, dir, token string) string {
	t.Helper()
	text := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, s.Host(), base64.StdEncoding.EncodeToString([]byte("me:"+token)))
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// silent stops the service and looks for secrets in what was said, and in its arguments.
func (s *secretive) silent(t *testing.T) {
	t.Helper()
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.Process().Pid))
	if err != nil || !bytes.Contains(arguments, []byte("serve")) {
		t.Logf("the arguments of the service are %q (error %v), so only what it said is looked at", arguments, err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	log := s.Said()
	for _, line := range []string{"level=DEBUG", "refused", "this service did not issue the token", "was revoked"} {
		if !strings.Contains(log, line) {
			t.Errorf("the log does not have %q, so that it proves nothing:\n%s", line, log)
		}
	}
	db, err := sqlite.Open(t.Context(), filepath.Join(s.Dir, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := db.Secret(t.Context(), "oci-token-key", []byte("it is there"))
	if err := errors.Join(err, db.Close()); err != nil || len(key) != 32 {
		t.Fatalf("the key has %d bytes, error %v", len(key), err)
	}
	s.secrets["key"], s.secrets["key as text"], s.secrets["key as hex"] = string(key), base64.StdEncoding.EncodeToString(key), hex.EncodeToString(key)
	pem, err := os.ReadFile(filepath.Join(s.root, "tls", "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	s.secrets["TLS key"] = strings.Split(string(pem), "\n")[1]
	for where, text := range map[string]string{"the log": log, "an answer or a client's output": s.said.String(), "the arguments": string(arguments)} {
		for what, secret := range s.secrets {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("the %s is in %s: ...%s", what, where, text[max(i-200, 0):i])
			}
		}
	}
}

// A secret in an argument can be read by everybody on the machine.
func TestNoFlagTakesASecret(t *testing.T) {
	t.Parallel()
	a := &program.App{UI: ui.New("mlpromote", os.Stdout, os.Stderr, func(string) string { return "" }), Getenv: func(string) string { return "" }}
	n := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			n++
			for _, word := range []string{"token", "password", "secret", "credential"} {
				if strings.Contains(f.Name, word) {
					t.Errorf("%s --%s", c.CommandPath(), f.Name)
				}
			}
		})
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(root(a))
	if n < 20 {
		t.Errorf("there are only %d flags", n)
	}
}
