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
	keys := jobKeys(t, work, state)
	if err := programtest.CopyTree(programtest.Root("ci", "generic"), filepath.Join(work, "ci", "generic")); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + state, "MLPROMOTE_DATA=" + filepath.Join(state, "data"), "MLPROMOTE_CACHE=" + programtest.Cache(t),
		"COSIGN_PASSWORD=" + jobPassword, "BUILDER_KEY=" + keys("builder"), "VERIFIER_KEY=" + keys("verifier"), "MLPROMOTE_KEYS=.keys",
		"MLPROMOTE_PROGRAM=" + programtest.Program(t), "MLPROMOTE_CI_OUTPUTS=mlpromote.env", "MLPROMOTE_CI_SUMMARY=mlpromote.md", "MLPROMOTE_CI_JUNIT=mlpromote-junit.xml"}
	steps := jenkinsStep.FindAllStringSubmatch(lines(t, programtest.Root("ci", "jenkins", "Jenkinsfile")), -1)
	if len(steps) != 8 {
		t.Fatalf("the example has %d lines of shell, want 8", len(steps))
	}
	for _, step := range steps {
		if strings.Contains(step[1], "STEP=promote") { // a service would sign with its own key
			env = append(env, "MLPROMOTE_KEYS="+filepath.Dir(keys("promoter")))
		}
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
	if _, err := os.Stat(filepath.Join(work, ".keys")); err == nil {
		t.Error("the keys are still there")
	}
	if got := dotenvReport(t, filepath.Join(work, "mlpromote.env")); valueOf(got, "MLPROMOTE_ENVIRONMENT") != "prod" {
		t.Errorf("outputs %q, want a promotion to prod", got)
	}
	if junit := lines(t, filepath.Join(work, "mlpromote-junit.xml")); !strings.Contains(junit, "<testsuite ") {
		t.Errorf("JUnit %.80q, want suites", junit)
	}
}

// jobPassword is that of the keys of [jobKeys].
const jobPassword = "a password"

// jobKeys puts the example into work, makes a key for each role that signs and trusts it, as docs/how-to/keys.md says, and gives
// the path of the private key of a role.
func jobKeys(t *testing.T, work, state string) func(role string) string {
	t.Helper()
	if err := programtest.Digits(work); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), programtest.Program(t), args...)
		cmd.Dir = work
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + state, "COSIGN_PASSWORD=" + jobPassword, "MLPROMOTE_DATA=" + filepath.Join(state, "data")}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	of := func(role string) string { return filepath.Join(state, role, role+".key") }
	for _, role := range []string{"builder", "verifier", "promoter"} {
		run("key", "generate", "--role", role, "--keys", filepath.Dir(of(role)))
		run("trust", "add", strings.TrimSuffix(of(role), ".key")+".pub", "--role", role)
	}
	return of
}

// jenkinsText is text of the Jenkinsfile that Groovy changes before the shell sees it.
var jenkinsText = regexp.MustCompile(`sh\(?[^'\n]*"[^"\n]*\$[{A-Za-z]`)

// What a branch, a title or a job before says is a variable of a step, and never text of a script.
func TestJenkinsfileHostileValues(t *testing.T) {
	t.Parallel()
	file := lines(t, programtest.Root("ci", "jenkins", "Jenkinsfile"))
	if found := jenkinsText.FindString(file); found != "" {
		t.Errorf("Groovy puts a value into a script: %q", found)
	}
	for _, step := range jenkinsStep.FindAllStringSubmatch(file, -1) {
		if !strings.Contains(step[1]+step[3], "STEP=") && step[2] == "" {
			continue // keys
		}
		t.Run(step[1]+step[3], func(t *testing.T) {
			t.Parallel()
			work := t.TempDir()
			if err := programtest.CopyTree(programtest.Root("ci", "generic"), filepath.Join(work, "ci", "generic")); err != nil {
				t.Fatal(err)
			}
			handed := "MLPROMOTE_REF=" + strings.ReplaceAll(hostileText, "\n", " ") + "\n"
			if err := os.WriteFile(filepath.Join(work, "mlpromote.env"), []byte(handed), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(work, "mlpromote.yaml"), []byte("model: \"x$(touch ran)`touch ran`\\n::error::x\"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-xe", "-c", step[1]+step[3])
			cmd.Dir = work
			cmd.Env = []string{
				"PATH=" + os.Getenv("PATH"), "HOME=" + work, "MLPROMOTE_DATA=" + filepath.Join(work, "data"), "MLPROMOTE_PROGRAM=" + programtest.Program(t),
				"MLPROMOTE_REGISTRY=", "MLPROMOTE_CI_OUTPUTS=out.env",
				"MLPROMOTE_REF=" + hostileText, "BRANCH_NAME=" + hostileText, "CHANGE_TITLE=" + hostileText,
			}
			out, err := cmd.CombinedOutput()
			if (err == nil) != (step[2] != "") {
				t.Errorf("got %v, want a refusal of a verb alone\n%s", err, out)
			}
			if _, err := os.Stat(filepath.Join(work, "ran")); err == nil {
				t.Errorf("a value was run\n%s", out)
			}
		})
	}
}
