package programtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Model is that of the digits example.
const Model = "vision/digits"

// Job is a folder with a spec, and what the verbs that are run there see.
type Job struct {
	T       *testing.T
	Program string
	Dir     string
	Env     []string // all of it

	version int
}

// NewJob makes dir a copy of the digits example for one target; env is added to that of
// this process.
func NewJob(t *testing.T, program, dir string, env ...string) *Job {
	t.Helper()
	if err := Digits(dir); err != nil {
		t.Fatal(err)
	}
	return &Job{T: t, Program: program, Dir: dir, Env: append(os.Environ(), env...)}
}

// Bump gives the spec a new version.
func (j *Job) Bump() {
	j.T.Helper()
	j.version++
	err := editSpec(j.Dir, func(line string) string {
		if strings.HasPrefix(line, "version:") {
			return fmt.Sprintf("version: 1.0.%d\n", j.version)
		}
		return line
	})
	if err != nil {
		j.T.Fatal(err)
	}
}

// Release takes a new version to prod.
func (j *Job) Release() {
	j.T.Helper()
	j.Bump()
	j.Promote()
}

// Promote takes the version that the spec has to prod.
func (j *Job) Promote() {
	j.T.Helper()
	for _, verb := range []string{"build", "verify", "promote"} {
		j.Must(verb)
	}
}

// Command is a verb that is not started.
func (j *Job) Command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(j.T.Context(), j.Program, args...)
	cmd.Dir, cmd.Env = j.Dir, j.Env
	return cmd
}

// Must runs a verb, which must succeed, and gives its stdout, trimmed.
func (j *Job) Must(args ...string) string {
	j.T.Helper()
	cmd := j.Command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		j.T.Fatalf("mlpromote %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// Refused runs a verb, which must end with an exit code and print no result, and gives what
// it said.
func (j *Job) Refused(code int, args ...string) string {
	j.T.Helper()
	cmd := j.Command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != code || len(out) > 0 {
		j.T.Errorf("mlpromote %s: got %v, want exit code %d and no result\n%s%s", strings.Join(args, " "), err, code, out, stderr.Bytes())
	}
	return stderr.String()
}

// Drift runs a check, which must end with exit code 4, and gives what it printed.
func (j *Job) Drift(args ...string) string {
	j.T.Helper()
	cmd := j.Command(args...)
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 4 {
		j.T.Errorf("mlpromote %s: got %v, want exit code 4\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Head is the digest of an environment's head.
func (j *Job) Head(environment string) string {
	j.T.Helper()
	var heads []struct{ Release string }
	if err := json.Unmarshal([]byte(j.Must("list", "--env", environment, "--output", "json")), &heads); err != nil || len(heads) == 0 {
		j.T.Fatalf("heads of %s: %v (%v)", environment, heads, err)
	}
	return heads[len(heads)-1].Release
}

// Check looks for anything torn: the history is whole, every head can be read with all that
// it names, and prod's can be resolved, which takes a summary.
func (j *Job) Check(after string) {
	j.T.Helper()
	j.T.Logf("after %s: staging %s, prod %s", after, j.Head("staging"), j.Head("prod"))
	j.Must("history", "verify")
	j.Must("inspect", "staging/"+Model)
	j.Must("inspect", "prod/"+Model)
	j.Must("resolve", Model, "--env", "prod")
}
