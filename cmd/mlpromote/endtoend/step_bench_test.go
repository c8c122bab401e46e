//go:build cgo

package endtoend

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// BenchmarkStep times steps of a job in which nothing changed, beside a step that does nothing.
func BenchmarkStep(b *testing.B) {
	work, state := b.TempDir(), b.TempDir()
	if err := programtest.Digits(work); err != nil {
		b.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + state, "MLPROMOTE_DATA=" + filepath.Join(state, "data"), "MLPROMOTE_CACHE=" + programtest.Cache(b),
		"MLPROMOTE_PROGRAM=" + programtest.Program(b), "MLPROMOTE_CI_OUTPUTS=" + filepath.Join(state, "out"), "MLPROMOTE_CI_SUMMARY=" + filepath.Join(state, "summary")}
	run := func(script, step string) {
		cmd := exec.CommandContext(b.Context(), "sh", script)
		cmd.Dir, cmd.Env = work, append([]string{"MLPROMOTE_STEP=" + step}, env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%s: %v\n%s", step, err, out)
		}
	}
	nothing := filepath.Join(state, "nothing.sh")
	if err := os.WriteFile(nothing, []byte(":\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	script := programtest.Root("ci", "generic", "step.sh")
	for _, step := range []string{"build", "verify", "promote"} {
		run(script, step) // what follows finds everything done
	}
	reports := func(on bool) {
		for _, name := range []string{"JUNIT", "CODEQUALITY", "ANNOTATIONS"} {
			variable := "MLPROMOTE_CI_" + name + "=" + filepath.Join(state, name)
			if on {
				env = append(env, variable)
			} else {
				env = slices.DeleteFunc(env, func(v string) bool { return v == variable })
			}
		}
	}
	b.Run("nothing", func(b *testing.B) {
		for b.Loop() {
			run(nothing, "")
		}
	})
	for _, step := range []string{"build", "promote"} {
		b.Run(step, func(b *testing.B) {
			for b.Loop() {
				run(script, step)
			}
		})
		b.Run(step+" with reports", func(b *testing.B) {
			reports(true)
			defer reports(false)
			for b.Loop() {
				run(script, step)
			}
		})
	}
}
