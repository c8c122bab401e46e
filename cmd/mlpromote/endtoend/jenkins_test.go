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

// jenkinsStep is a line of shell of the Jenkinsfile, or the variable that one sets.
var jenkinsStep = regexp.MustCompile(`sh '([^']+)'|env\.(\w+) = sh\(script: "([^"]+)"`)

// TestJenkinsfile runs the lines of shell of the example, in their order and with the variables that they set.
func TestJenkinsfile(t *testing.T) {
	t.Parallel()
	work, state := t.TempDir(), t.TempDir()
	if err := programtest.Digits(work); err != nil {
		t.Fatal(err)
	}
	if err := programtest.CopyTree(programtest.Root("ci", "generic"), filepath.Join(work, "ci", "generic")); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + state, "MLPROMOTE_DATA=" + filepath.Join(state, "data"), "MLPROMOTE_CACHE=" + programtest.Cache(t),
		"MLPROMOTE_PROGRAM=" + programtest.Program(t), "MLPROMOTE_CI_OUTPUTS=mlpromote.env", "MLPROMOTE_CI_SUMMARY=mlpromote.md", "MLPROMOTE_CI_JUNIT=mlpromote-junit.xml"}
	steps := jenkinsStep.FindAllStringSubmatch(lines(t, programtest.Root("ci", "jenkins", "Jenkinsfile")), -1)
	if len(steps) != 4 {
		t.Fatalf("the example has %d lines of shell, want 4", len(steps))
	}
	for _, step := range steps {
		cmd := exec.CommandContext(t.Context(), "sh", "-xe", "-c", step[1]+step[3])
		cmd.Dir, cmd.Env = work, env
		cmd.Stderr = nil
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", step[0], err, out)
		}
		if step[2] != "" {
			env = append(env, step[2]+"="+strings.TrimSpace(string(out)))
		}
	}
	if got := dotenvReport(t, filepath.Join(work, "mlpromote.env")); valueOf(got, "MLPROMOTE_ENVIRONMENT") != "prod" {
		t.Errorf("outputs %q, want a promotion to prod", got)
	}
	if junit := lines(t, filepath.Join(work, "mlpromote-junit.xml")); !strings.Contains(junit, "<testsuite ") {
		t.Errorf("JUnit %.80q, want suites", junit)
	}
}
