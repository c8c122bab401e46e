//go:build cgo

package endtoend

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// crashSeed makes the instants of kills the same in every run; MLPROMOTE_CRASH_SEED takes
// others.
const crashSeed = 20260101

// seeded gives the instants of one test, which has a stream of its own.
func seeded(t *testing.T, stream uint64) *rand.Rand {
	t.Helper()
	seed := uint64(crashSeed)
	if text := os.Getenv("MLPROMOTE_CRASH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, stream))
}

// victims are the verbs that are killed, each in its turn.
func victims() [][]string {
	return [][]string{{"build"}, {"verify"}, {"promote"}, {"rollback", programtest.Model, "--env", "prod", "--reason", "crash test"}}
}

// thirds are those of the time that a verb takes: it is killed in the first, the second and
// the last in turn, each time at a random instant of it.
const thirds = 3

// soakKills is what MLPROMOTE_SOAK asks for.
const soakKills = 500

// kills is how often a test kills, which otherwise does so n times.
func kills(n int) int {
	if os.Getenv("MLPROMOTE_SOAK") != "" {
		return soakKills
	}
	return n
}

// TestCrash ends verbs with SIGKILL, each in its turn, at random instants. After each,
// nothing is torn, no protected head is without its summary, and the same verb, run again,
// finishes.
func TestCrash(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	c := &crash{
		Job:    programtest.NewJob(t, programtest.Program(t), filepath.Join(root, "digits"), programtest.Environment(root, programtest.Cache(t))...),
		random: seeded(t, 0), takes: make(map[string]time.Duration),
	}
	c.begin(func(verb string) {
		began := time.Now()
		c.Must(verb)
		c.takes[verb] = time.Since(began)
	})
	c.takes["rollback"] = c.takes["promote"]
	n := kills(len(victims()) * thirds)
	for round := range n {
		c.round(round)
	}
	t.Logf("killed in time: %d of %d", c.killed, n)
	if c.killed == 0 {
		t.Error("no process was killed before it was done: the test tests nothing")
	}
}

// crash is one data directory that lives through all kills.
type crash struct {
	*programtest.Job
	random *rand.Rand
	takes  map[string]time.Duration // of a verb that is not killed
	killed int
}

// begin takes two releases to prod, so that there is something to return to; run runs a
// verb, and learns from it.
func (c *crash) begin(run func(verb string)) {
	for range 2 {
		c.Bump()
		for _, verb := range []string{"build", "verify", "promote"} {
			run(verb)
		}
	}
}

// round kills one verb of the job, runs it again, and looks. The rollback leaves a hold,
// which ends with its round.
func (c *crash) round(n int) {
	c.T.Helper()
	verbs := victims()
	args := verbs[n%len(verbs)]
	if args[0] == "build" {
		c.Bump()
	}
	before := c.Head("prod")
	c.strike(c.Command(args...), args[0], n/len(verbs))
	c.Check("killed " + args[0])
	if args[0] != "rollback" || c.Head("prod") == before { // a second one would go further back
		c.Must(args...)
	}
	if args[0] == "rollback" {
		c.releaseHold()
	}
	c.Check(args[0] + " again")
}

// releaseHold lets promotions go on after a rollback.
func (c *crash) releaseHold() {
	c.T.Helper()
	c.Must("hold", "release", programtest.Model, "--env", "prod", "--reason", "crash test")
}

// instant is a random part of what a verb takes, 0 to 1: its turn says of which third.
func (c *crash) instant(turn int) float64 {
	return (float64(turn%thirds) + c.random.Float64()) / thirds
}

// strike starts a verb and ends it at a random instant of the time that it takes.
func (c *crash) strike(cmd *exec.Cmd, verb string, turn int) {
	c.T.Helper()
	part := c.instant(turn)
	if err := cmd.Start(); err != nil {
		c.T.Fatal(err)
	}
	timer := time.AfterFunc(time.Duration(part*float64(c.takes[verb])), func() { _ = cmd.Process.Kill() }) // it may be gone already
	err := cmd.Wait()
	timer.Stop()
	var exit *exec.ExitError
	if errors.As(err, &exit) && !exit.Exited() {
		c.killed++
	} else if err != nil {
		c.T.Fatalf("mlpromote %s: %v", strings.Join(cmd.Args[1:], " "), err)
	}
}
