//go:build cgo

package endtoend

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// workflowBlock is a block of YAML in a page.
var workflowBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// rulesOfZizmor leaves out what a tool beside it does not take: actionlint does not know the form that zizmor prefers to ./ci/github.
const rulesOfZizmor = "rules: {self-repository: {disable: true}}\n"

// TestGitHubFilesAreSafe has zizmor and the schemas of GitHub look at the action and at each workflow of the page.
func TestGitHubFilesAreSafe(t *testing.T) {
	t.Parallel()
	safe, schema := newStock(t, "zizmor"), newStock(t, "check-jsonschema")
	repository := actionRepository(t)
	for n, text := range pageWorkflows(t) {
		writeWorkflow(t, repository, text)
		workflows := filepath.Join(repository, ".github", "workflows")
		if err := os.Rename(filepath.Join(workflows, "release.yml"), filepath.Join(workflows, n+".yaml")); err != nil {
			t.Fatal(err)
		}
		schema.must(t, "--builtin-schema", "vendor.github-workflows", filepath.Join(workflows, n+".yaml"))
	}
	schema.must(t, "--builtin-schema", "vendor.github-actions", filepath.Join(repository, "ci", "github", "action.yml"))
	rules := filepath.Join(repository, "zizmor.yml")
	if err := os.WriteFile(rules, []byte(rulesOfZizmor), 0o600); err != nil {
		t.Fatal(err)
	}
	safe.must(t, "--offline", "--persona=pedantic", "--config="+rules, repository)
}

// pageWorkflows are the workflows of docs/how-to/github.md by their names.
func pageWorkflows(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, block := range workflowBlock.FindAllStringSubmatch(lines(t, programtest.Root("docs/how-to/github.md")), -1) {
		first, _, _ := strings.Cut(block[1], "\n")
		name, isWorkflow := strings.CutPrefix(first, "name: ")
		if !isWorkflow {
			t.Errorf("a block begins with %q, want a workflow with its name", first)
		}
		all[name] = block[1]
	}
	for _, name := range []string{"release", "release-keyless", "rollback", "release-matrix", "pull-request", "pull-request-comment"} {
		if all[name] == "" {
			t.Errorf("the page has no workflow %q", name)
		}
	}
	return all
}

// TestGitHubPageLint checks each workflow of docs/how-to/github.md, and its use of the action, with actionlint.
func TestGitHubPageLint(t *testing.T) {
	t.Parallel()
	lint := newStock(t, "actionlint")
	for name, text := range pageWorkflows(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repository := actionRepository(t)
			writeWorkflow(t, repository, text)
			if err := os.WriteFile(filepath.Join(repository, ".github", "actionlint.yaml"), []byte("self-hosted-runner: {labels: [builder, gpu-l4]}\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), lint.program, "-no-color", "-shellcheck=", "-pyflakes=")
			cmd.Dir, cmd.Env = repository, lint.env
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("actionlint: %v\n%s", err, out)
			}
		})
	}
}
