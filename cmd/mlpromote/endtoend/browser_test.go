//go:build cgo

package endtoend

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/access/signin/signintest"
)

// peopleYAML lets people in who sign in at an issuer, by their groups.
const peopleYAML = `issuers:
  - issuer: %s
    audience: registry
    ca: ca.pem
    signIn: {name: corp, client: %s, secretFile: secret, scopes: [profile]}
    rules:
      - match: {groups: release-managers}
        grants: [{allow: [read, promote], environment: "**", model: "**"}]
      - match: {groups: engineers}
        grants: [{allow: [read], environment: "**", model: "**"}]
`

// walkers are people with browsers, who do one step after the other: tools/pagecheck/walk.go has what they can do.
type walkers struct{ steps []map[string]string }

func (w *walkers) do(who, do, text string, name ...string) {
	step := map[string]string{"who": who, "do": do, "text": text}
	if len(name) > 0 {
		step["name"] = name[0]
	}
	w.steps = append(w.steps, step)
}

// walk does the steps in Chromium, which trusts a certificate too.
func (w *walkers) walk(t *testing.T, certificate string) {
	t.Helper()
	data, err := json.Marshal(w.steps)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "steps.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), os.Getenv("MLPROMOTE_PAGECHECK"), "-walk", file, "-trust", certificate).CombinedOutput(); err != nil {
		t.Errorf("%v: want that every step can be done:\n%s", err, out)
	}
}

// servedToPeople is a service over TLS with a release in prod that a node reports. People sign in at an issuer.
func servedToPeople(t *testing.T, issuer *signintest.Issuer) *programtest.Service {
	t.Helper()
	root := t.TempDir()
	s := programtest.NewService(t, programtest.Program(t), root)
	c := programtest.NewJob(t, s.Program, filepath.Join(root, "digits"), append(s.Env, "MLPROMOTE_DATA="+s.Dir)...)
	c.Release()
	ca, err := os.ReadFile(filepath.Join(issuer.Certificates, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"ca.pem": string(ca), "secret": signintest.Secret, "access.yaml": fmt.Sprintf(peopleYAML, issuer.URL, signintest.Client),
	} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Flags = []string{"--node-reports", "1h", "--tls-cert", filepath.Join(issuer.Certificates, "tls.crt"), "--tls-key", filepath.Join(issuer.Certificates, "tls.key")}
	token := c.Must("token", "create", "edge", "--allow", "read", "--env", "prod")
	s.MustStartAndStop(t)
	c.Env = append(append(os.Environ(), s.ClientEnv()...), "MLPROMOTE_CA="+filepath.Join(issuer.Certificates, "ca.pem"), "MLPROMOTE_TOKEN="+token)
	if err := s.ShareKeys(); err != nil {
		t.Fatal(err)
	}
	c.Must("pull", "vision/digits", "--env", "prod", "-o", filepath.Join(root, "pulled"))
	c.Must("node", "report", filepath.Join(root, "pulled"), "--name", "edge-7")
	return s
}

// People sign in at an issuer, which is another site, and come back to the page that they wanted. What they decide is done in their
// names. Who signs out of all browsers is signed out of them, and of no others.
func TestSignInAtAnIssuerInABrowser(t *testing.T) {
	t.Parallel()
	if os.Getenv("MLPROMOTE_PAGECHECK") == "" {
		t.Skip("MLPROMOTE_PAGECHECK: `make e2e-web` sets it")
	}
	issuer := signintest.New(t)
	issuer.People = map[string]signintest.Claims{
		"ana": {"sub": "ana", "name": "Ana", "groups": []string{"release-managers"}},
		"ben": {"sub": "ben", "name": "Ben", "groups": []string{"engineers"}},
		"eve": {"sub": "eve", "name": "Eve", "groups": []string{"guests"}},
	}
	s := servedToPeople(t, issuer)
	w := &walkers{}
	host := issuer.URL[len("https://"):]
	signIn := func(who, name, path string) {
		w.do(who, "allow", host)
		w.do(who, "open", s.URL+path)
		w.do(who, "want", "You are not signed in.")
		w.do(who, "press", "Sign in")
		w.do(who, "press", "Sign in at "+host)
		w.do(who, "type", name, "name")
		w.do(who, "press", "Log in")
	}
	model := "/models/vision/digits"
	signIn("ana's desk", "ana", model)
	w.do("ana's desk", "want", "as ana")
	w.do("ana's desk", "want", "Engines of 1.0.1 in prod")
	w.do("ana's desk", "press", "Hold promotions")
	w.do("ana's desk", "type", "until the audit", "reason")
	w.do("ana's desk", "press", "Hold promotions")
	w.do("ana's desk", "want", "until the audit by ana")
	w.do("ana's desk", "want", "✓ head 1 node")
	w.do("ana's desk", "fits", "")

	signIn("ana's phone", "ana", "/history")
	w.do("ana's phone", "want", "as ana")
	signIn("ben", "ben", model)
	w.do("ben", "want", "as ben")
	w.do("ben", "lack", "Release the hold Roll back")
	w.do("ben", "want", `Release the hold: You do not have the permission "promote" for vision/digits in prod`)

	w.do("ana's phone", "press", "ana")
	w.do("ana's phone", "press", "Sign out of all browsers")
	w.do("ana's phone", "open", s.URL+model)
	w.do("ana's phone", "want", "You are not signed in.")
	w.do("ana's desk", "open", s.URL+model)
	w.do("ana's desk", "want", "The session has ended: sign in again.")
	w.do("ben", "open", s.URL+model)
	w.do("ben", "want", "as ben")
	w.do("ben", "press", "ben")
	w.do("ben", "press", "Sign out")
	w.do("ben", "open", s.URL+model)
	w.do("ben", "want", "You are not signed in.")

	signIn("eve", "eve", model)
	w.do("eve", "want", "no rule in access.yaml matches")
	w.do("eve", "press", "Sign in at "+host)
	w.do("eve", "press", "Cancel")
	w.do("eve", "want", "access_denied")
	w.do("eve", "lack", "Engines of")
	w.walk(t, filepath.Join(issuer.Certificates, "tls.crt"))
}
