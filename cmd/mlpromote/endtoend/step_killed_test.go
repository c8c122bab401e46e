//go:build cgo

package endtoend

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// cancelled is a pipeline whose jobs are cancelled: all processes of a step are killed at a random instant.
type cancelled struct {
	*programtest.Job
	state string
	takes map[string]time.Duration // of a step that is not killed
}

// pipelineSteps are the jobs of a release that is built in parts, with the variables of each.
func (c *cancelled) pipelineSteps() [][]string {
	return [][]string{
		{"build", "MLPROMOTE_ARGS=--target=linux-amd64-v1"}, {"assemble"}, {"verify", "MLPROMOTE_REF=staging/" + programtest.Model + ":1.0." + c.version()},
		{"promote", "MLPROMOTE_REF=staging/" + programtest.Model + ":1.0." + c.version()},
		{"rollback", "MLPROMOTE_REF=" + programtest.Model, "MLPROMOTE_ARGS=--env=prod\n--reason=cancelled test"},
	}
}

// version is the last part of the version that the spec has.
func (c *cancelled) version() string {
	_, after, _ := strings.Cut(lines(c.T, filepath.Join(c.Dir, "mlpromote.yaml")), "version: 1.0.")
	version, _, _ := strings.Cut(after, "\n")
	return version
}

// start starts a step with all its processes in one group.
func (c *cancelled) start(step []string) *exec.Cmd {
	c.T.Helper()
	cmd := exec.CommandContext(c.T.Context(), "/bin/sh", programtest.Root("ci", "generic", "step.sh"))
	cmd.Dir = c.Dir
	cmd.Env = append(append(c.Env, "MLPROMOTE_STEP="+step[0], "MLPROMOTE_PROGRAM="+c.Program, "MLPROMOTE_CI_OUTPUTS="+c.outputs(step[0])), step[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		c.T.Fatal(err)
	}
	return cmd
}

func (c *cancelled) outputs(step string) string { return filepath.Join(c.state, step+".env") }

// must runs a step to its end, and gives the digest that it hands on.
func (c *cancelled) must(step []string) string {
	c.T.Helper()
	if err := os.RemoveAll(c.outputs(step[0])); err != nil {
		c.T.Fatal(err)
	}
	began := time.Now()
	if err := c.start(step).Wait(); err != nil {
		c.T.Fatalf("%v: %v", step, err)
	}
	c.takes[step[0]] = time.Since(began)
	return valueOf(dotenvReport(c.T, c.outputs(step[0])), "MLPROMOTE_RELEASE_DIGEST")
}

// TestStepsCanBeCancelled cancels each step of a pipeline at a random instant and runs it again, as the button of a CI system does. It then
// ends as one that was never cancelled: with the same release, and nothing torn.
func TestStepsCanBeCancelled(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	c := &cancelled{
		Job:   programtest.NewJob(t, programtest.Program(t), filepath.Join(root, "digits"), programtest.Environment(root, programtest.Cache(t))...),
		state: t.TempDir(), takes: map[string]time.Duration{},
	}
	c.Bump()
	for _, step := range c.pipelineSteps()[:4] { // there is a release to go back to, and each step's time is known
		c.must(step)
	}
	c.takes["rollback"] = c.takes["promote"]
	random, killed := seeded(t, 7), 0
	for round := range kills(3) {
		c.Bump()
		built := ""
		for _, step := range c.pipelineSteps() {
			part := (float64(round%thirds) + random.Float64()) / thirds
			before := c.Head("prod")
			cmd := c.start(step)
			cancel := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it may be gone already
			timer := time.AfterFunc(time.Duration(part*float64(c.takes[step[0]])), cancel)
			err := cmd.Wait()
			timer.Stop()
			var exit *exec.ExitError
			if errors.As(err, &exit) && !exit.Exited() {
				killed++
			} else if err != nil {
				t.Fatalf("%v: %v", step, err)
			}
			c.Must("history", "verify")
			if step[0] == "rollback" && c.Head("prod") != before {
				continue // it was done, and a second one would go further back
			}
			digest := c.must(step)
			switch step[0] {
			case "assemble":
				built = digest
			case "verify", "promote":
				if digest != built {
					t.Errorf("round %d: %s handed on %q, want what was assembled, %q", round, step[0], digest, built)
				}
			}
			c.Must("history", "verify")
		}
		c.Must("hold", "release", programtest.Model, "--env", "prod", "--reason", "cancelled test")
	}
	t.Logf("killed: %d", killed)
	if killed == 0 {
		t.Error("no step was killed before it was done: the test tests nothing")
	}
}
