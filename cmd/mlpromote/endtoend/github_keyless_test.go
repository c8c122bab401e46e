//go:build cgo

package endtoend

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/signer/signertest"
)

// hub stands for GitHub and sigstore around a repository: an issuer of tokens, a Fulcio, an authority for timestamps, and a service that
// trusts the jobs of the repository.
type hub struct {
	t          *testing.T
	act        *stock
	repository string
	archive    [2]string // URL and checksum of the program
	issuer     string
	service    *programtest.Service
	admin      string // a token for the service

	mu     sync.Mutex
	tokens map[string][]string // that jobs were given, by audience
}

const (
	oidcSecret = "secret-of-the-runner"
	hubCommit  = "0123456789abcdef0123456789abcdef01234567"
)

// claims are what the issuer knows about a job, whatever its variables say.
func (h *hub) claims() signertest.Claims {
	c := signertest.Job()
	c.WorkflowRef = "acme/vision/.github/workflows/release.yml@refs/heads/main"
	c.JobWorkflowRef = c.WorkflowRef
	c.SHA, c.RunID, c.RunAttempt = hubCommit, "77", "3"
	return c
}

const hubEnvironments = `version: 1
registry: local
environments:
  staging:
  prod: {from: staging, require: [signature, provenance, parity]}
trust:
  - {key: keys/local.pub, roles: [promoter], resources: ["oci://local/"]}
  - identity:
      issuer: ISSUER
      claims: {repository_id: "456", job_workflow_ref: acme/vision/.github/workflows/release.yml@refs/heads/main, ref: refs/heads/main}
    roles: [builder, verifier]
    resources: ["oci://local/"]
roots:
  - {sigstore: root.json}
`

const hubAccess = `issuers:
  - issuer: ISSUER
    audience: https://registry.example.com
    principal: "github:{repository}@{ref}"
    rules:
      - match: {repository_id: "456", ref: refs/heads/main}
        grants:
          - {allow: [read, push, verify], environment: staging, model: "vision/**"}
          - {allow: [read], environment: prod, model: "vision/**"}
      - match: {repository_id: "456", environment: production}
        grants:
          - {allow: [read, promote], environment: prod, model: "vision/**"}
          - {allow: [read], environment: staging, model: "vision/**"}
`

// newHub makes what the page says: trust at the service, and files without secrets in the repository.
func newHub(t *testing.T) *hub {
	t.Helper()
	program := programtest.Program(t)
	h := &hub{t: t, act: newStock(t, "act"), repository: actionRepository(t), tokens: map[string][]string{}}
	h.archive[0], h.archive[1] = serveArchive(t, program)
	authority := signertest.New(t)
	issuer := httptest.NewServer(authority.Issuer(t, oidcSecret, h.claims, func(audience, token string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.tokens[audience] = append(h.tokens[audience], token)
	}))
	fulcio, stamps := httptest.NewServer(authority.Fulcio(nil)), httptest.NewServer(authority.Stamps(nil))
	for _, server := range []*httptest.Server{issuer, fulcio, stamps} {
		t.Cleanup(server.Close)
	}
	h.issuer = issuer.URL
	root := t.TempDir()
	h.service = programtest.NewService(t, program, root)
	h.run(nil, "key", "generate", "--data", h.service.Dir)
	policy, keys := filepath.Join(h.repository, "ci", "policy"), filepath.Join(h.repository, "ci", "keys")
	ours := strings.NewReplacer("ISSUER", h.issuer)
	for _, folder := range []string{h.service.Dir, policy} {
		trust := []byte(ours.Replace(hubEnvironments))
		if err := errors.Join(os.MkdirAll(filepath.Join(folder, "keys"), 0o755), os.WriteFile(filepath.Join(folder, "environments.yaml"), trust, 0o600),
			os.WriteFile(filepath.Join(folder, "root.json"), authority.Root(t), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	public, err := os.ReadFile(filepath.Join(h.service.Dir, "keys", "local.pub"))
	if err := errors.Join(err, os.WriteFile(filepath.Join(policy, "keys", "local.pub"), public, 0o600),
		os.WriteFile(filepath.Join(h.service.Dir, "access.yaml"), []byte(ours.Replace(hubAccess)), 0o600)); err != nil {
		t.Fatal(err)
	}
	h.run(nil, "key", "timestamps", stamps.URL, "--keys", keys, "--policy-dir", policy)
	for _, role := range []string{"builder", "verifier"} {
		h.run(nil, "key", "identity", "--role", role, "--fulcio", fulcio.URL, "--identity-from", "github", "--keys", keys, "--policy-dir", policy)
	}
	h.admin = h.run(nil, "token", "create", "admin", "--allow", "administer", "--data", h.service.Dir)
	h.service.MustStart(t)
	h.commit()
	return h
}

// run runs the program in the repository, and gives what it printed.
func (h *hub) run(env []string, args ...string) string {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), programtest.Program(h.t), args...)
	cmd.Dir, cmd.Env = h.repository, append(append(os.Environ(), h.service.Env...), env...)
	out, err := cmd.Output()
	if err != nil {
		var ended *exec.ExitError
		errors.As(err, &ended)
		h.t.Fatalf("mlpromote %v: %v\n%s", args, err, ended.Stderr)
	}
	return strings.TrimSpace(string(out))
}

// ask runs a verb against the service as its administrator.
func (h *hub) ask(args ...string) string {
	h.t.Helper()
	return h.run([]string{"MLPROMOTE_REGISTRY=" + h.service.URL, "MLPROMOTE_TOKEN=" + h.admin, "MLPROMOTE_DATA=" + h.service.Client}, args...)
}

func (h *hub) commit() {
	h.t.Helper()
	for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "x"}} {
		cmd := exec.CommandContext(h.t.Context(), "git", args...)
		cmd.Dir = h.repository
		if out, err := cmd.CombinedOutput(); err != nil {
			h.t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

// ours puts what is here in place of the names of the page.
func (h *hub) ours(text string) string {
	return strings.NewReplacer("/opt/mlpromote/mlpromote", programtest.Program(h.t),
		"https://releases.example.com/mlpromote-1.0.0-linux-amd64.tar.gz", h.archive[0], `"..."`, h.archive[1],
		"registry: https://registry.example.com", "registry: "+h.service.URL).Replace(text)
}

// workflow runs a workflow as runners of GitHub do: each of its labels is this machine. It must end well.
func (h *hub) workflow(event, text string, more ...string) string {
	h.t.Helper()
	writeWorkflow(h.t, h.repository, h.ours(text))
	args := []string{event, "--pull=false", "--no-cache-server", "--action-offline-mode",
		"--env", "MLPROMOTE_CACHE=" + programtest.Cache(h.t), "--env", "MLPROMOTE_DATA=" + filepath.Join(h.act.dir, "data")}
	if strings.Contains(text, "id-token: write") {
		args = append(args, "--env", "ACTIONS_ID_TOKEN_REQUEST_URL="+h.issuer+"/token?api-version=2.0",
			"--env", "ACTIONS_ID_TOKEN_REQUEST_TOKEN="+oidcSecret)
	}
	for _, label := range []string{"ubuntu-latest", "builder", "gpu-l4"} {
		args = append(args, "-P", label+"=-self-hosted")
	}
	cmd := exec.CommandContext(h.t.Context(), h.act.program, append(args, more...)...)
	cmd.Dir, cmd.Env = h.repository, h.act.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.t.Fatalf("act %s: %v\n%s", event, err, out)
	}
	return string(out)
}

// TestGitHubKeylessWorkflow runs the workflows of the page that need no secret: build, verify and promote by the tokens of the jobs,
// twice, and a rollback by hand. The provenance says what the issuer signed, and no token is in any log. All of it, with runners and
// servers, has no network but loopback.
func TestGitHubKeylessWorkflow(t *testing.T) {
	t.Parallel()
	if alone(t) {
		return
	}
	h := newHub(t)
	pages := pageWorkflows(t)
	log := h.workflow("push", pages["release-keyless"], "--env", "RUNNER_ENVIRONMENT=forged")
	first := h.ask("list", "--env", "prod", "--output", "json")
	h.provenance()
	if got, want := slices.Sorted(maps.Keys(h.tokens)), []string{"https://registry.example.com", "mlpromote", "sigstore"}; !slices.Equal(got, want) {
		t.Errorf("tokens were asked for %q, want %q", got, want)
	}
	spec := filepath.Join(h.repository, "mlpromote.yaml")
	if err := os.WriteFile(spec, []byte(strings.Replace(lines(t, spec)+"\n", "version: 1.0.0", "version: 1.1.0", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	h.commit()
	log += h.workflow("push", pages["release-keyless"])
	if second := h.ask("list", "--env", "prod", "--output", "json"); second == first {
		t.Fatalf("prod has %s after two releases, want another one", second)
	}
	const reason = "p99 doubled $(touch ran) `touch ran` ::error::forged"
	log += h.workflow("workflow_dispatch", pages["rollback"], "--input", "model=vision/digits", "--input", "reason="+reason)
	if got, want := digestOf(t, h.ask("list", "--env", "prod", "--output", "json")), digestOf(t, first); got != want {
		t.Errorf("prod has %s after the rollback, want %s", got, want)
	}
	if got := h.ask("history", "list", "--output", "json"); !strings.Contains(got, reason) {
		t.Errorf("the history does not have the reason %q:\n%s", reason, got)
	}
	for audience, tokens := range h.tokens {
		for _, token := range tokens {
			if strings.Contains(log, token) || strings.Contains(log, strings.Split(token, ".")[2]) {
				t.Errorf("a token for %s is in the log", audience)
			}
		}
	}
}

func digestOf(t *testing.T, list string) string {
	t.Helper()
	var heads []struct{ Release string }
	if err := json.Unmarshal([]byte(list), &heads); err != nil || len(heads) != 1 {
		t.Fatalf("got %s, error %v, want one head", list, err)
	}
	return heads[0].Release
}

// provenance checks that the provenance of the release has what the issuer signed.
func (h *hub) provenance() {
	h.t.Helper()
	said := h.ask("inspect", "prod/vision/digits", "--output", "json")
	for _, want := range []string{
		`"issuer":"` + h.issuer + `"`, `"repository":"acme/vision"`, `"sha":"` + hubCommit + `"`, `"run_id":"77"`, `"run_attempt":"3"`,
		`"workflow_ref":"acme/vision/.github/workflows/release.yml@refs/heads/main"`,
	} {
		if !strings.Contains(strings.ReplaceAll(said, `": "`, `":"`), want) {
			h.t.Errorf("the provenance does not have %s", want)
		}
	}
	if strings.Contains(said, "forged") {
		h.t.Error("the provenance has what a variable says")
	}
}

// artifactStep is a step that hands a file to a workflow that runs later, which act cannot.
const (
	uploads   = `uses: actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0` + "\n        with: {name: comment, path: comment.md}"
	downloads = `- uses: actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1` + "\n" +
		`        with: {name: comment, path: "${{ runner.temp }}/report", run-id: "${{ github.event.workflow_run.id }}", github-token: "${{ github.token }}"}`
)

// TestGitHubForkWorkflow runs the two workflows for pull requests of forks: the one without secrets builds, verifies and reports, and
// the other one writes its report into one comment, which a second run edits.
func TestGitHubForkWorkflow(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("no jq in PATH (Debian: apt-get install jq)")
	}
	h := newHub(t)
	pages, p := pageWorkflows(t), &pullRequest{}
	api, handed := p.serve(t), filepath.Join(t.TempDir(), "comment.md")
	replace := func(text, old, with string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("the workflow has no step %q", old)
		}
		return strings.Replace(text, old, with, 1)
	}
	check := replace(pages["pull-request"], uploads, fmt.Sprintf("run: cp comment.md '%s'", handed))
	const report = "${{ runner.temp }}/report"
	comment := replace(pages["pull-request-comment"], downloads, fmt.Sprintf("- run: mkdir -p '%s' && cp '%s' '%[1]s/comment.md'", report, handed))
	const body = "          BODY:"
	comment = replace(comment, body, fmt.Sprintf("          GITHUB_API_URL: %s\n          GITHUB_REPOSITORY: team/models\n%s", api, body))
	event := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(event, []byte(`{"action": "completed", "workflow_run": {"id": 9, "event": "pull_request", "head_branch": "feature/$(id)&x",
		"head_repository": {"full_name": "a-fork/models", "owner": {"login": "a-fork"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		h.workflow("pull_request", check)
		h.workflow("workflow_run", comment, "-e", event, "-s", "GITHUB_TOKEN=secret")
	}
	if len(p.comments) != 1 || !strings.Contains(p.comments[0].Body, "vision/digits 1.0.0 **may be promoted to prod**") {
		t.Errorf("got the comments %+v, want one that says what a promotion would do", p.comments)
	}
}
