//go:build cgo

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// kills is how many processes TestCrash ends, unless MLPROMOTE_SOAK asks for more.
const (
	kills     = 20
	soakKills = 500
)

// crashSeed makes the instants of TestCrash the same in every run;
// MLPROMOTE_CRASH_SEED takes others.
const crashSeed = 20260101

// TestCrash ends verbs with SIGKILL at random instants. After each, nothing is torn,
// no protected head is without its summary, and the same verb, run again, finishes.
func TestCrash(t *testing.T) {
	t.Parallel()
	seed, rounds := uint64(crashSeed), kills
	if text := os.Getenv("MLPROMOTE_CRASH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getenv("MLPROMOTE_SOAK") != "" {
		rounds = soakKills
	}
	t.Logf("seed %d, %d kills", seed, rounds)
	c := newCrash(t, rand.New(rand.NewPCG(seed, 0)))
	for round := range rounds {
		c.round(round)
	}
	t.Logf("killed in time: %d of %d", c.killed, rounds)
	if c.killed == 0 {
		t.Error("no process was killed before it was done: the test tests nothing")
	}
}

// crash is one data directory that lives through all kills.
type crash struct {
	t       *testing.T
	random  *rand.Rand
	program string
	dir     string
	env     []string
	version int
	takes   map[string]time.Duration // of a verb that is not killed
	killed  int
}

func newCrash(t *testing.T, random *rand.Rand) *crash {
	t.Helper()
	c := &crash{t: t, random: random, program: fastProgram(t), dir: filepath.Join(t.TempDir(), "digits"), takes: make(map[string]time.Duration)}
	c.env = append(os.Environ(), environment(t.TempDir(), testCache(t))...)
	if err := copyTree(filepath.Join(examples, "digits"), c.dir); err != nil {
		t.Fatal(err)
	}
	if err := oneTarget(c.dir); err != nil {
		t.Fatal(err)
	}
	for range 2 { // two releases in prod, so that there is something to return to
		c.bump()
		for _, verb := range []string{"build", "verify", "promote"} {
			began := time.Now()
			c.must(verb)
			c.takes[verb] = time.Since(began)
		}
	}
	return c
}

// round kills one verb of the job of a new version, and finishes the job.
func (c *crash) round(n int) {
	c.t.Helper()
	victims := [][]string{{"build"}, {"verify"}, {"promote"}, {"rollback", "vision/digits", "--env", "prod", "--reason", "crash test"}}
	victim := c.random.IntN(len(victims))
	c.bump()
	for i, args := range victims {
		if i == 3 && victim != 3 {
			break
		}
		before := c.head("prod")
		if i == victim {
			c.kill(n, args)
			c.check(n, args[0])
		}
		if args[0] == "rollback" && c.head("prod") != before {
			break // it was done before it was killed; a second one would go further back
		}
		c.must(args...)
	}
	if victim == 3 {
		c.must("hold", "release", "vision/digits", "--env", "prod", "--reason", "crash test")
	}
	c.check(n, "all")
}

// bump gives the spec a new version.
func (c *crash) bump() {
	c.t.Helper()
	c.version++
	path := filepath.Join(c.dir, "mlpromote.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "version:") {
			lines[i] = fmt.Sprintf("version: 1.0.%d", c.version)
		}
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crash) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(c.t.Context(), c.program, args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	return cmd
}

// must runs a verb to its end and gives its stdout.
func (c *crash) must(args ...string) string {
	c.t.Helper()
	cmd := c.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("mlpromote %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// kill starts a verb and ends it at a random instant of the time that it takes.
func (c *crash) kill(n int, args []string) {
	c.t.Helper()
	takes := c.takes[args[0]]
	if takes == 0 {
		takes = c.takes["promote"]
	}
	instant := time.Duration(c.random.Float64() * float64(takes))
	cmd := c.command(args...)
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	timer := time.AfterFunc(instant, func() { _ = cmd.Process.Kill() }) // it may be gone already
	err := cmd.Wait()
	timer.Stop()
	var exit *exec.ExitError
	if errors.As(err, &exit) && !exit.Exited() {
		c.killed++
	} else if err != nil {
		c.t.Fatalf("round %d: mlpromote %s: %v", n, strings.Join(args, " "), err)
	}
}

// check looks for anything torn: the history is whole, every head can be read with all
// that it names, and prod's can be resolved, which takes a summary.
func (c *crash) check(n int, after string) {
	c.t.Helper()
	c.t.Logf("round %d after %s: staging %s, prod %s", n, after, c.head("staging"), c.head("prod"))
	c.must("history", "verify")
	c.must("inspect", "staging/vision/digits")
	c.must("inspect", "prod/vision/digits")
	c.must("resolve", "vision/digits", "--env", "prod")
}

// head is the line that list has for an environment.
func (c *crash) head(environment string) string {
	c.t.Helper()
	fields := strings.Fields(c.must("list", "--env", environment, "--output", "text"))
	return fields[len(fields)-1]
}
