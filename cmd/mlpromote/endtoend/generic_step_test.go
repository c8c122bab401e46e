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

// genericStep runs the script of other systems in dir with these variables alone, and gives the log and the exit code.
func genericStep(t *testing.T, dir string, env ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", programtest.Root("ci", "generic", "step.sh"))
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestGenericStep builds, verifies and promotes by the script, in an environment of the documented variables alone.
func TestGenericStep(t *testing.T) {
	t.Parallel()
	work, state := t.TempDir(), t.TempDir()
	if err := programtest.Digits(work); err != nil {
		t.Fatal(err)
	}
	url, sum := serveArchive(t, programtest.Program(t))
	digest := ""
	for _, step := range []string{"build", "verify", "promote"} {
		outputs, ref := filepath.Join(state, step), ""
		if digest != "" {
			ref = "staging/vision/digits@" + digest
		}
		log, exit := genericStep(t, work, "PATH="+os.Getenv("PATH"), "HOME="+state, "MLPROMOTE_DATA="+filepath.Join(state, "data"), "MLPROMOTE_CACHE="+programtest.Cache(t),
			"MLPROMOTE_STEP="+step, "MLPROMOTE_REF="+ref, "MLPROMOTE_URL="+url, "MLPROMOTE_SHA256="+sum, "MLPROMOTE_CI_OUTPUTS="+outputs)
		if exit != 0 {
			t.Fatalf("%s: exit code %d\n%s", step, exit, log)
		}
		_, after, _ := strings.Cut("\n"+lines(t, outputs), "\nMLPROMOTE_RELEASE_DIGEST=")
		got, _, _ := strings.Cut(after, "\n")
		if !strings.HasPrefix(got, "sha256:") || digest != "" && got != digest {
			t.Fatalf("%s: digest %q, want that of the build, %q", step, got, digest)
		}
		digest = got
	}
}

// TestGenericStepRefuses checks that no value of a variable is run, read as a flag, or makes the script run what it must not.
func TestGenericStepRefuses(t *testing.T) {
	t.Parallel()
	program := programtest.Program(t)
	url, _ := serveArchive(t, "/bin/true")
	const hostile = "$(touch ran)\n`touch ran`\nARGS\ntouch ran; touch ran #"
	for name, c := range map[string]struct {
		env []string
		say string
	}{
		"a step that is none":      {[]string{"MLPROMOTE_PROGRAM=" + program, "MLPROMOTE_STEP=" + hostile}, "MLPROMOTE_STEP is none of"},
		"a step that is a flag":    {[]string{"MLPROMOTE_PROGRAM=" + program, "MLPROMOTE_STEP=--help"}, "MLPROMOTE_STEP is none of"},
		"a hostile ref":            {[]string{"MLPROMOTE_PROGRAM=" + program, "MLPROMOTE_STEP=verify", "MLPROMOTE_REF=" + hostile}, "no data directory"},
		"a ref that is a flag":     {[]string{"MLPROMOTE_PROGRAM=" + program, "MLPROMOTE_STEP=verify", "MLPROMOTE_REF=--help"}, "no data directory"},
		"hostile arguments":        {[]string{"MLPROMOTE_PROGRAM=" + program, "MLPROMOTE_STEP=verify", "MLPROMOTE_ARGS=" + hostile}, "arg"},
		"a hostile program":        {[]string{"MLPROMOTE_PROGRAM=" + hostile, "MLPROMOTE_STEP=verify"}, "no file that can be run"},
		"a download without a sum": {[]string{"MLPROMOTE_URL=" + url, "MLPROMOTE_STEP=verify"}, "not run unchecked"},
		"a sum of another archive": {[]string{"MLPROMOTE_URL=" + url, "MLPROMOTE_STEP=verify", "MLPROMOTE_SHA256=" + strings.Repeat("0", 64)}, "is not the one of MLPROMOTE_SHA256"},
		"a sum that is text":       {[]string{"MLPROMOTE_URL=" + url, "MLPROMOTE_STEP=verify", "MLPROMOTE_SHA256=" + hostile}, "not run unchecked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := t.TempDir()
			log, exit := genericStep(t, work, append(c.env, "PATH="+os.Getenv("PATH"), "HOME="+work, "MLPROMOTE_DATA="+filepath.Join(work, "data"))...)
			if exit == 0 || !strings.Contains(log, c.say) {
				t.Errorf("exit code %d, want a failure that says %q\n%s", exit, c.say, log)
			}
			if _, err := os.Stat(filepath.Join(work, "ran")); err == nil {
				t.Error("the text of a variable was run")
			}
		})
	}
}
