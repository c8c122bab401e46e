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

// TestGitHubPageLint checks each workflow of docs/how-to/github.md, and its use of the action, with actionlint.
func TestGitHubPageLint(t *testing.T) {
	t.Parallel()
	lint := newStock(t, "actionlint")
	page, err := os.ReadFile(programtest.Root("docs/how-to/github.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, block := range workflowBlock.FindAllStringSubmatch(string(page), -1) {
		first, _, _ := strings.Cut(block[1], "\n")
		name, isWorkflow := strings.CutPrefix(first, "name: ")
		if !isWorkflow {
			t.Errorf("a block begins with %q, want a workflow with its name", first)
			continue
		}
		found[name] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repository := actionRepository(t)
			writeWorkflow(t, repository, block[1])
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
	for _, name := range []string{"release", "release-matrix"} {
		if !found[name] {
			t.Errorf("the page has no workflow %q", name)
		}
	}
}
