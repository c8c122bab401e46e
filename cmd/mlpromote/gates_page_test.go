package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

const gatesPage = "docs/how-to/gates.md"

// gates is a service with a release that may be promoted to prod and one that may not, and a token that may read.
type gates struct {
	url, token       string
	allowed, refused registry.Digest
}

func newGates(t *testing.T) gates {
	t.Helper()
	s := onDisk(t)
	g, err := authn.New(t.Context(), authn.Config{Tokens: s.names, Secrets: s.names})
	if err != nil {
		t.Fatal(err)
	}
	address, r := network(t, s, g)
	proven := r.Build(t, registrytest.Build{})
	r.Prove(t, proven)
	unproven := r.Build(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	grant := storage.Grant{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "**", Model: registrytest.Model}
	token, text, err := access.Mint("gate", []storage.Grant{grant}, clock.Now(), time.Time{})
	if err == nil {
		err = s.names.CreateToken(t.Context(), token)
	}
	if err != nil {
		t.Fatal(err)
	}
	return gates{address, text, proven.Digest, unproven.Digest}
}

// script runs a script and wants its exit code.
func (g gates) script(t *testing.T, name, dir, script string, want int, more ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "MLPROMOTE_REGISTRY=" + g.url,
		"MLPROMOTE_TOKEN=" + g.token, "DIGEST=" + string(g.allowed)}, more...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		t.Errorf("%s: exit %d, want %d:\n%s", name, got, want, out)
	}
	if strings.Contains(string(out), g.token) {
		t.Errorf("%s: the token is printed:\n%s", name, out)
	}
}

// TestGatesPage executes the scripts of the page with curl against a service, and that of the Job, which must be one that
// Kubernetes knows.
func TestGatesPage(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	g := newGates(t)
	var job batchv1.Job
	if err := yaml.UnmarshalStrict([]byte(fenced(t, "yaml argo")), &job); err != nil {
		t.Fatal(err)
	}
	container := job.Spec.Template.Spec.Containers[0]
	if job.Annotations["argocd.argoproj.io/hook"] != "PreSync" || *job.Spec.BackoffLimit != 0 || strings.Join(container.Command, " ") != "sh -euc" {
		t.Errorf("the Job is %+v, want a hook before the synchronization that runs a script once", job)
	}
	for name, script := range map[string]string{"curl": fenced(t, "sh gate"), "Argo CD": container.Args[0]} {
		for when, c := range map[string]struct {
			want int
			more []string
		}{
			"allowed":             {0, nil},
			"refused":             {1, []string{"DIGEST=" + string(g.refused)}},
			"unknown":             {2, []string{"DIGEST=sha256:" + strings.Repeat("0", 64)}},
			"empty":               {2, []string{"DIGEST="}},
			"more in the digest":  {2, []string{"DIGEST=" + string(g.allowed) + "&environment=prod"}},
			"a token of another":  {2, []string{"MLPROMOTE_TOKEN=mlp_x_y"}},
			"a slash at the end":  {0, []string{"MLPROMOTE_REGISTRY=" + g.url + "/"}},
			"nothing listens":     {2, []string{"MLPROMOTE_REGISTRY=http://127.0.0.1:1"}},
			"another service":     {2, []string{"MLPROMOTE_REGISTRY=" + answering(t, http.StatusOK, `<html>"allowed":true</html>`)}},
			"a sign-in elsewhere": {2, []string{"MLPROMOTE_REGISTRY=" + answering(t, http.StatusFound, `{"allowed":false}`)}},
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				g.script(t, name, t.TempDir(), script, c.want, c.more...)
			})
		}
	}
}

// TestGatesPageRule runs the answer to GitHub, for which a server on this machine stands. It approves only what the policy allows, and
// sends the App's token to GitHub alone.
func TestGatesPageRule(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	g, rule, dir := newGates(t), fenced(t, "sh rule"), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gate.sh"), []byte(fenced(t, "sh gate")), 0o600); err != nil {
		t.Fatal(err)
	}
	var bodies []string
	github := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.Header.Get("Authorization")+" "+string(body))
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(github.Close)
	to := func(callback string, more ...string) []string {
		return append([]string{"GITHUB_API_URL=" + github.URL, "APP_TOKEN=of-the-app", "CALLBACK=" + callback}, more...)
	}
	callback := github.URL + "/repos/o/r/actions/runs/1/deployment_protection_rule"
	g.script(t, "refused", dir, rule, 1, to(callback, "DIGEST="+string(g.refused))...)
	g.script(t, "elsewhere", dir, rule, 2, to(strings.Replace(callback, "127.0.0.1", "localhost", 1))...)
	if len(bodies) != 0 {
		t.Fatalf("GitHub got %q before the policy allowed anything", bodies)
	}
	g.script(t, "allowed", dir, rule, 0, to(callback)...)
	var answer struct {
		Environment string `json:"environment_name"`
		State       string `json:"state"`
		Comment     string `json:"comment"`
	}
	body, ok := strings.CutPrefix(strings.Join(bodies, "\n"), "Bearer of-the-app ")
	if err := json.Unmarshal([]byte(body), &answer); !ok || err != nil || answer.State != "approved" ||
		answer.Environment != "prod" || !strings.Contains(answer.Comment, string(g.allowed)) {
		t.Errorf("GitHub got %q, error %v; want one approval of prod", bodies, err)
	}
}

// kargoStep has the fields of a promotion step and of the http step's configuration that the page uses, as Kargo 1.11 has them in
// http-config.json. Kargo itself does not run here; its expressions do.
type kargoStep struct {
	Uses  string `json:"uses"`
	As    string `json:"as"`
	Retry struct {
		Timeout string `json:"timeout"`
	} `json:"retry"`
	Config struct {
		Method            string       `json:"method"`
		URL               string       `json:"url"`
		Headers           []kargoValue `json:"headers"`
		QueryParams       []kargoValue `json:"queryParams"`
		Timeout           string       `json:"timeout"`
		PollInterval      string       `json:"pollInterval"`
		SuccessExpression string       `json:"successExpression"`
		FailureExpression string       `json:"failureExpression"`
		Outputs           []struct {
			Name           string `json:"name"`
			FromExpression string `json:"fromExpression"`
		} `json:"outputs"`
	} `json:"config"`
}

type kargoValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// kargoTemplate is an expression within a text.
var kargoTemplate = regexp.MustCompile(`\$\{\{(.*?)\}\}`)

// kargo evaluates expressions as Kargo does, by the library that it uses and with the functions and names that it gives them.
// Source: pkg/expressions and pkg/promotion/runner/builtin/http_requester.go of akuity/kargo.
type kargo struct {
	t     *testing.T
	given map[string]any
}

// fill puts values in place of the expressions in a text.
func (k kargo) fill(text string) string {
	k.t.Helper()
	return kargoTemplate.ReplaceAllStringFunc(text, func(template string) string {
		return fmt.Sprint(k.evaluate(kargoTemplate.FindStringSubmatch(template)[1], k.given))
	})
}

func (k kargo) evaluate(expression string, given map[string]any) any {
	k.t.Helper()
	program, err := expr.Compile(strings.TrimSpace(expression))
	if err != nil {
		k.t.Fatalf("%s: %v", expression, err)
	}
	value, err := expr.Run(program, given)
	if err != nil {
		k.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// run sends the request of the step once, and says what becomes of the step: it succeeded, failed for good, or asks again.
func (k kargo) run(step kargoStep, service string) (state string, outputs map[string]any) {
	k.t.Helper()
	values := url.Values{}
	for _, q := range step.Config.QueryParams {
		values.Set(q.Name, k.fill(q.Value))
	}
	address := strings.Replace(k.fill(step.Config.URL), "https://models.example", service, 1) + "?" + values.Encode()
	request, err := http.NewRequestWithContext(k.t.Context(), step.Config.Method, address, http.NoBody)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, h := range step.Config.Headers {
		request.Header.Set(h.Name, k.fill(h.Value))
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		k.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	var body any = map[string]any{}
	if len(text) > 0 && json.Valid(text) {
		_ = json.Unmarshal(text, &body)
	}
	answer := map[string]any{"response": map[string]any{
		"status": int64(response.StatusCode), "header": response.Header.Get, "headers": response.Header, "body": body,
	}}
	switch {
	case k.evaluate(step.Config.FailureExpression, answer) == true: // it comes before success
		return "failed", nil
	case k.evaluate(step.Config.SuccessExpression, answer) != true:
		return "running", nil
	}
	outputs = map[string]any{}
	for _, o := range step.Config.Outputs {
		outputs[o.Name] = k.evaluate(o.FromExpression, answer)
	}
	return "succeeded", outputs
}

// TestGatesPageKargo runs the Kargo step with its expressions: it goes on when the policy allows the digest of the Freight, asks again while it
// does not, and ends where nothing can be decided.
func TestGatesPageKargo(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	var step kargoStep
	if err := yaml.UnmarshalStrict([]byte(fenced(t, "yaml kargo")), &step); err != nil {
		t.Fatal(err)
	}
	if step.Uses != "http" || step.As != "mlpromote" {
		t.Errorf("got the step %+v", step)
	}
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(busy.Close)
	for name, c := range map[string]struct {
		service, digest, token, want string
	}{
		"allowed":             {g.url, string(g.allowed), g.token, "succeeded"},
		"refused":             {g.url, string(g.refused), g.token, "running"},
		"no token":            {g.url, string(g.allowed), "", "failed"},
		"no Freight":          {g.url, "", g.token, "failed"},
		"unknown":             {g.url, "sha256:" + strings.Repeat("0", 64), g.token, "failed"},
		"a busy service":      {busy.URL, string(g.allowed), g.token, "running"},
		"another service":     {answering(t, http.StatusOK, `{"hello":"x"}`), string(g.allowed), g.token, "running"},
		"a list":              {answering(t, http.StatusOK, `{"allowed":"true"}`), string(g.allowed), g.token, "running"},
		"what is no JSON":     {answering(t, http.StatusOK, `allowed: true`), string(g.allowed), g.token, "running"},
		"a hostile Freight":   {g.url, string(g.allowed) + "&environment=staging", g.token, "failed"},
		"a hostile Freight 2": {g.url, "${{ secret('mlpromote').token }}", g.token, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := kargo{t, map[string]any{
				"secret": func(string) map[string]string { return map[string]string{"token": c.token} },
				"imageFrom": func(string) struct{ RepoURL, Tag, Digest string } {
					return struct{ RepoURL, Tag, Digest string }{Digest: c.digest}
				},
			}}
			got, outputs := k.run(step, c.service)
			if got != c.want || c.want == "succeeded" && outputs["digest"] != c.digest {
				t.Errorf("the step %s with the outputs %v, want it %s with the digest of the Freight", got, outputs, c.want)
			}
		})
	}
}

// fenced is the one block of a kind on the page.
func fenced(t *testing.T, kind string) string {
	t.Helper()
	page, err := os.ReadFile(programtest.Root(gatesPage))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)\n```"+kind+"\n(.*?)\n```\n").FindAllStringSubmatch(string(page), -1)
	if len(found) != 1 {
		t.Fatalf("%s has %d blocks of %s, want one", gatesPage, len(found), kind)
	}
	return found[0][1]
}

// answering is a server that is no mlpromote, and gives every request the same answer.
func answering(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/sign-in")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}
