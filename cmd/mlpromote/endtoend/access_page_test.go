//go:build cgo

package endtoend

import (
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/signer/signertest"
)

const builderPassword = "of the builder"

// yamlBlock is the block of YAML in access.md that has a text.
func yamlBlock(t *testing.T, has string) string {
	t.Helper()
	page, err := os.ReadFile(programtest.Root("docs", "how-to", "access.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(page), "```yaml\n")[1:] {
		if block, _, _ := strings.Cut(part, "```"); strings.Contains(block, has) {
			return block
		}
	}
	t.Fatalf("access.md has no YAML with %q", has)
	return ""
}

// job is what a CI system runs: shell, and the environment that the page gives it.
type job struct {
	script string
	env    map[string]string
}

func gitHubJob(t *testing.T) job {
	t.Helper()
	var workflow struct {
		Env   map[string]string
		Steps []struct{ Run string }
	}
	if err := yaml.Unmarshal([]byte(yamlBlock(t, "MLPROMOTE_TOKEN_AUDIENCE")), &workflow); err != nil {
		t.Fatal(err)
	}
	j := job{env: workflow.Env}
	for _, step := range workflow.Steps {
		j.script += step.Run + "\n"
	}
	return j
}

func gitLabJob(t *testing.T) job {
	t.Helper()
	var pipeline struct {
		Build struct {
			Variables map[string]string
			Script    []string
		}
	}
	if err := yaml.Unmarshal([]byte(yamlBlock(t, "id_tokens")), &pipeline); err != nil {
		t.Fatal(err)
	}
	return job{strings.Join(pipeline.Build.Script, "\n"), pipeline.Build.Variables}
}

// TestAccessJobs does what access.md tells whoever sets up CI, and runs its jobs as they stand
// there, against a service that asks for tokens. What they build counts as signed.
func TestAccessJobs(t *testing.T) {
	t.Parallel()
	program := programtest.Program(t)
	root := t.TempDir()
	s := programtest.NewService(t, program, root)
	s.MustStart(t)
	runBlocks(t, program, "docs/how-to/access.md", "", root, "DATA="+s.Dir, "COSIGN_PASSWORD="+builderPassword)
	environments := filepath.Join(s.Dir, "environments.yaml")
	tokens := signertest.New(t)
	claims := func() signertest.Claims {
		c := signertest.Job()
		c.Ref = "refs/heads/main"
		return c
	}
	issuer := httptest.NewServer(tokens.Issuer(t, "of-the-job", claims, func(string, string) {}))
	t.Cleanup(issuer.Close)
	callers := strings.ReplaceAll(yamlBlock(t, "token.actions.githubusercontent.com"), "https://token.actions.githubusercontent.com", issuer.URL)
	if err := errors.Join(s.Stop(), os.WriteFile(environments, []byte(yamlBlock(t, "keys/ci-builder.pub")), 0o600),
		os.WriteFile(filepath.Join(s.Dir, "access.yaml"), []byte(callers), 0o600)); err != nil {
		t.Fatal(err)
	}
	token := func(name string, grants ...string) string {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"token", "create", name, "--data", s.Dir}, grants...)...)
		cmd.Env = append(os.Environ(), s.Env...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("token create %s: %v", name, err)
		}
		return strings.TrimSpace(string(out))
	}
	admin := token("admin", "--allow", "administer")
	builds := token("job", "--allow", "read,push,verify", "--env", "staging", "--model", "vision/**", "--grant", "read:prod:vision/**")
	s.MustStart(t)
	key, err := os.ReadFile(filepath.Join(root, "ci", "builder.key"))
	if err != nil {
		t.Fatal(err)
	}
	for name, j := range map[string]job{"GitHub": gitHubJob(t), "GitLab": gitLabJob(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := programtest.NewJob(t, program, filepath.Join(t.TempDir(), "digits"), s.Env...)
			if name == "GitLab" {
				c.Bump()
				c.Env = append(c.Env, "MLPROMOTE_TOKEN="+builds)
			}
			j.run(t, c, s.URL, issuer.URL, string(key))
			c.Env = append(c.Env, "MLPROMOTE_REGISTRY="+s.URL, "MLPROMOTE_TOKEN="+admin, "MLPROMOTE_TOKEN_AUDIENCE=")
			dry := c.Command("promote", "--dry-run")
			out, _ := dry.Output() // parity is not proven
			said := string(out)
			if code := dry.ProcessState.ExitCode(); code != 4 || !strings.Contains(said, "parity") || strings.Contains(unmet(said), "signature") || strings.Contains(unmet(said), "provenance") {
				t.Errorf("exit code %d, want 4 with parity alone unmet:\n%s", code, said)
			}
		})
	}
}

// unmet are the lines of requirements that are not met.
func unmet(decision string) string {
	var lines string
	for line := range strings.Lines(decision) {
		if strings.Contains(line, "UNMET") {
			lines += line
		}
	}
	return lines
}

// run runs the job in the folder of c. A job of GitHub gets its token of the issuer, by the audience of the page; one of GitLab has
// it in a variable.
func (j job) run(t *testing.T, c *programtest.Job, url, issuer, key string) {
	t.Helper()
	secrets := map[string]string{"${{ secrets.BUILDER_PASSWORD }}": builderPassword, "${{ secrets.BUILDER_KEY }}": key}
	keyFile := filepath.Join(t.TempDir(), "key") // as a variable of the type File
	if err := os.WriteFile(keyFile, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(c.Env, "COSIGN_PASSWORD="+builderPassword, "BUILDER_KEY="+keyFile, "RUNNER_TEMP="+t.TempDir(),
		"ACTIONS_ID_TOKEN_REQUEST_TOKEN=of-the-job", "ACTIONS_ID_TOKEN_REQUEST_URL="+issuer+"/token?api-version=2.0")
	for name, value := range j.env {
		if secret, ok := secrets[value]; ok {
			value = secret
		}
		env = append(env, name+"="+strings.ReplaceAll(value, "$CI_PROJECT_DIR", c.Dir))
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", j.script)
	cmd.Dir = c.Dir
	cmd.Env = append(env, "PATH="+filepath.Dir(c.Program)+":"+os.Getenv("PATH"), "MLPROMOTE_REGISTRY="+url)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, j.script, out)
	}
}
