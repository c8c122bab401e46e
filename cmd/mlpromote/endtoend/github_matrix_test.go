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

// A refusal of the step matrix quotes lines of the spec. Each comes while the runner takes no commands.
func TestGitHubMatrixQuotesNoCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outputs := filepath.Join(dir, "outputs")
	if err := os.WriteFile(filepath.Join(dir, "mlpromote.yaml"), []byte("model: x\n::error::spec: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", programtest.Root("ci", "github", "run.sh"))
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "PROGRAM=" + programtest.Program(t), "STEP=matrix", "ARGS=", "MLPROMOTE_REGISTRY=", "GITHUB_OUTPUT=" + outputs}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 2 {
		t.Fatalf("got %v, want exit code 2\n%s", err, out)
	}
	token := regexp.MustCompile(`(?m)^::stop-commands::([0-9a-f]{32})$`).FindSubmatchIndex(out)
	quoted := strings.Index(string(out), "::error::spec")
	if token == nil || quoted < token[1] {
		t.Fatalf("got a line of the spec at %d, want it after commands were stopped\n%s", quoted, out)
	}
	if end := strings.Index(string(out), "\n::"+string(out[token[2]:token[3]])+"::\n"); end < quoted {
		t.Errorf("commands go on at %d, want after the quoted line at %d\n%s", end, quoted, out)
	}
	if _, err := os.Stat(outputs); err == nil {
		t.Error("a refused step wrote outputs")
	}
}
