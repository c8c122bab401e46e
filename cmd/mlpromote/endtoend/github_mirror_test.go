//go:build cgo

package endtoend

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// A repository that a marketplace lists has the action at its root, no workflows, and no link that leads out of it.
func TestMirrorAction(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mirror")
	for range 2 { // again changes nothing
		if out, err := exec.CommandContext(t.Context(), "sh", programtest.Root("tools", "mirroraction.sh"), dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	if got, want := strings.Join(names, " "), "LICENSE README.md action.yml comment.sh run.sh setup.sh"; got != want {
		t.Errorf("got the files %s, want %s", got, want)
	}
	if readme := lines(t, filepath.Join(dir, "README.md")); strings.Contains(readme, "](") || strings.Contains(readme, "uses: ./") {
		t.Error("README has links to files that are not there, or names the action by a path")
	}
	// Used as an action of its own, with the scripts beside it.
	repository := actionRepository(t)
	if err := programtest.CopyTree(dir, filepath.Join(repository, "mirror")); err != nil {
		t.Fatal(err)
	}
	writeWorkflow(t, repository, "name: x\non: [push]\njobs:\n  x:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v5\n      - uses: ./mirror\n        with: {step: setup, program: "+programtest.Program(t)+"}\n")
	act := newStock(t, "act")
	cmd := exec.CommandContext(t.Context(), act.program, "push", "-P", "ubuntu-latest=-self-hosted", "--pull=false", "--no-cache-server", "--action-offline-mode")
	cmd.Dir, cmd.Env = repository, act.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("act: %v\n%s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".github", "workflows"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "sh", programtest.Root("tools", "mirroraction.sh"), dir).CombinedOutput(); err == nil {
		t.Errorf("a repository with workflows was written to\n%s", out)
	}
}
