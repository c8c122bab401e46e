package service_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// trial is operations from a start.
type trial struct {
	*start
	t          *testing.T
	operations []operation
	answers    []answer
	failed     bool
}

// open begins the operations.
func (c *trial) open() *arena {
	a := c.start.copy()
	c.answers = make([]answer, len(c.operations))
	answers := c.answers
	for i, o := range c.operations {
		replica := a.replica(c.t, i+1)
		a.begin(c.t.Context(), func(ctx context.Context) { answers[i] = o.run(c.t, ctx, a, replica) })
	}
	return a
}

// check looks at the end of a schedule. The first that is wrong is told.
func (c *trial) check(a *arena) {
	if c.failed {
		return
	}
	wrong := verdict{a, c.operations, c.answers}.fault(c.t, c.model)
	if c.failed = wrong != ""; c.failed {
		c.t.Errorf("%s\n%s", wrong, a.told(c.operations, c.answers))
	}
}

// told says what happened in a schedule.
func (a *arena) told(operations []operation, answers []answer) string {
	var b strings.Builder
	for i, o := range operations {
		fmt.Fprintf(&b, "%d: %s: %s (%v)\n", i, o.name, answers[i].said, answers[i].err)
	}
	for i, line := range a.schedule {
		if i == 0 || line != a.schedule[i-1] {
			fmt.Fprintln(&b, " ", line)
		}
	}
	return b.String()
}

// Whatever two operations do at the same time, and however they meet, it is as if one came
// after the other.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range scenes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.start(t)
			schedules := 0
			for i, one := range c.operations {
				for _, other := range c.operations[i:] {
					schedules += s.pair(t, one, other)
				}
			}
			t.Logf("%d schedules", schedules)
		})
	}
}

// What holds for two holds for four, in orders by chance. A failure names its seed, which gives the same
// operations in the same order again.
func TestFourAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range scenes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.start(t)
			for seed := range uint64(soak(6, 3000)) {
				random := rand.New(rand.NewPCG(seed, 1))
				four := &trial{start: s, t: t}
				for range 4 {
					four.operations = append(four.operations, named(c.operations[random.IntN(len(c.operations))]))
				}
				s.chance(four, seed)
			}
		})
	}
}

// named makes a promotion of whatever is the head of its source one of a version. The former
// is two steps, as for a client that asks for the head first: it promotes what was the head
// when it began. Beside three others, of which one moves that head, that can be told.
func named(o operation) operation {
	if strings.HasPrefix(o.name, "promote  to ") {
		return promote(o.head, "1.2.0")
	}
	return o
}

// A collector and a client that stand still for longer than a removal lasts do no harm: what
// was acknowledged is there.
func TestPauseDuringRemoval(t *testing.T) {
	t.Parallel()
	s := littered(t, "staging", "prod")
	c := &trial{start: s, t: t, operations: []operation{collectGarbage(), uploadOrHear("prod/other", "stray"), pause()}}
	if runs, _ := explore(max(3, soak(pairRuns, 1<<20)), c.open, c.check); runs < 3 {
		t.Errorf("there are only %d orders: the test tests nothing", runs)
	}
	for seed := range uint64(soak(pairRuns, 3000)) {
		s.chance(c, seed)
	}
}

// A storage that carries out deletions twice does no harm either.
func TestRepeatedDeletions(t *testing.T) {
	t.Parallel()
	s := littered(t, "staging", "prod")
	s.late = true
	c := &trial{start: s, t: t, operations: []operation{collectOrHear(), uploadOrHear("prod/other", "stray"), repeatDeletions(), pause()}}
	if runs, _ := explore(max(3, soak(pairRuns, 1<<20)), c.open, c.check); runs < 3 {
		t.Errorf("there are only %d orders: the test tests nothing", runs)
	}
	for seed := range uint64(soak(200, 3000)) {
		s.chance(c, seed)
	}
}

// pairRuns is how many orders of a pair are tried every day, and then as many by chance. Most
// pairs have fewer. MLPROMOTE_SOAK tries them all.
const pairRuns = 20

// pair tries every order of two operations, as far as there is time for that, and some by
// chance where there is not.
func (s *start) pair(t *testing.T, one, other operation) int {
	t.Helper()
	c := &trial{start: s, t: t, operations: []operation{one, other}}
	runs, all := explore(soak(pairRuns, 1<<20), c.open, c.check)
	if all {
		return runs
	}
	byChance := soak(pairRuns, pairRuns)
	for seed := range uint64(byChance) {
		s.chance(c, seed)
	}
	return runs + byChance
}

// chance runs operations once in an order that a seed gives.
func (s *start) chance(c *trial, seed uint64) {
	a := c.open()
	a.wander(rand.New(rand.NewPCG(seed, 0)))
	before := c.failed
	c.check(a)
	a.stop()
	if c.failed && !before {
		c.t.Errorf("that was seed %d", seed)
	}
}

// soak gives a number for every day, or one for who has time. With the race detector the usual one is 1: strands hand
// over to one another, so that it can find nothing between them, and `make test` runs these tests without it.
func soak(usual, long int) int {
	switch {
	case os.Getenv("MLPROMOTE_SOAK") != "":
		return long
	case raceEnabled:
		return 1
	default:
		return usual
	}
}
