package main

import (
	"encoding/json"
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

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/registrytest"
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
	grant := registry.Grant{Permissions: []registry.Permission{registry.PermissionRead}, Environment: "**", Model: registrytest.Model}
	token, text, err := access.Mint("gate", []registry.Grant{grant}, clock.Now(), time.Time{})
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
// http-config.json. Kargo and its expressions do not run here.
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

// TestGatesPageKargo sends the request of the Kargo step with its expressions replaced. The answer has the members that the
// step reads, and no answer to a wrong question has the status of success.
func TestGatesPageKargo(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	var step kargoStep
	if err := yaml.UnmarshalStrict([]byte(fenced(t, "yaml kargo")), &step); err != nil {
		t.Fatal(err)
	}
	if step.Uses != "http" || step.Config.SuccessExpression != "response.status == 200 && response.body.allowed == true" ||
		step.Config.FailureExpression != "response.status in [400, 401, 403, 404, 409, 422]" {
		t.Errorf("got the step %+v", step)
	}
	for name, c := range map[string]struct {
		digest, token string
		status        int
		allowed       bool
	}{
		"allowed": {string(g.allowed), g.token, 200, true}, "refused": {string(g.refused), g.token, 200, false},
		"no token": {string(g.allowed), "", 401, false}, "no Freight": {"", g.token, 400, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fill := strings.NewReplacer("https://models.example", g.url, "${{ secret('mlpromote').token }}", c.token,
				`${{ imageFrom("models.example/staging/vision/digits").Digest }}`, c.digest)
			values := url.Values{}
			for _, q := range step.Config.QueryParams {
				values.Set(q.Name, fill.Replace(q.Value))
			}
			request, err := http.NewRequestWithContext(t.Context(), step.Config.Method, fill.Replace(step.Config.URL)+"?"+values.Encode(), http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range step.Config.Headers {
				request.Header.Set(h.Name, fill.Replace(h.Value))
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			var body struct {
				Allowed bool
				Digest  string
			}
			if err := json.NewDecoder(response.Body).Decode(&body); err != nil || response.StatusCode != c.status ||
				body.Allowed != c.allowed || c.status == 200 && body.Digest != c.digest {
				t.Errorf("got %d and %+v, error %v; want %d and allowed %v", response.StatusCode, body, err, c.status, c.allowed)
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
