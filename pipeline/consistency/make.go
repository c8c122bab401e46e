package consistency

import (
	"fmt"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// New makes the checks for the cases. A third of the time is for repeats, half of the rest for
// batches, and what is left for dimensions and then for inputs beyond the cases. Errors: those of reading and writing files.
func New(o Options) (*Set, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	s := &Set{Options: o}
	left := o.Budget
	n := max(affordable(left/3, 2*o.Run, repeatCases), affordable(left, 2*o.Run, 1))
	if n == 0 {
		s.leave(evidence.TrialRepeat, "", 2*o.Run, left)
	} else if err := s.makeRepeat(n); err != nil {
		return nil, err
	}
	left -= 2 * o.Run * time.Duration(n)
	unspent, err := s.makeBatches(left / 2)
	if err != nil {
		return nil, err
	}
	left, err = s.makeDimensions(left - left/2 + unspent)
	if err != nil {
		return nil, err
	}
	return s, s.makeBeyond(left)
}

// affordable is how many cases of this cost a time is enough for, at most so many.
func affordable(left, each time.Duration, most int) int {
	if each <= 0 {
		return most
	}
	return int(max(min(left/each, time.Duration(most)), 0))
}

// leave names a check that does not fit the budget.
func (s *Set) leave(kind evidence.Trial, what string, takes, left time.Duration) {
	s.late = true
	s.leaveFor(kind, what, fmt.Sprintf("it would take about %v, and %v are left for it",
		takes.Round(time.Millisecond), max(left, 0).Round(time.Millisecond)))
}

func (s *Set) leaveFor(kind evidence.Trial, what, reason string) {
	check := validators.TrialOf(kind).Check(what)
	check.Message = "left out: " + reason
	s.leftOut = append(s.leftOut, check)
}

// leaveOut records a kind of checks that does not apply to this model. Unlike a check that could not run, it leaves nothing undecided.
func (s *Set) leaveOut(kind evidence.Trial, why string) {
	check := validators.TrialOf(kind).Check("")
	check.Verdict, check.Message = evidence.VerdictRecorded, why
	s.leftOut = append(s.leftOut, check)
}

// makeRepeat writes the same cases twice, the first time in reverse, and others for loads, which are drawn apart. They have the
// form that they have in the cases, so that outputs are comparable with those of the cases.
func (s *Set) makeRepeat(n int) error {
	picked := s.fitting(s.pick(n))
	for turn, name := range []string{"again", "once"} {
		for _, group := range byShard(picked) {
			if turn == 0 {
				slices.Reverse(group)
			}
			made := s.shard(fmt.Sprintf("check-%d-%s-%05d", turn, name, group[0].shard), group)
			if err := s.store(made, s.read, tensor.Concat, 1); err != nil {
				return err
			}
			s.repeat = append(s.repeat, made)
		}
	}
	for _, group := range byShard(s.fitting(s.pick(min(n, otherCases)))) {
		made := s.shard(fmt.Sprintf("check-0-load-%05d", group[0].shard), group)
		if err := s.store(made, s.read, tensor.Concat, 1); err != nil {
			return err
		}
		s.loads = append(s.loads, made)
	}
	return nil
}

// fitting drops cases from the end until they fit in MaxBytes, all but the first.
func (s *Set) fitting(picked []slot) []slot {
	one, err := s.read(picked[0])
	if err != nil {
		return picked // the next to read it says so
	}
	size := int64(1)
	for _, t := range one {
		size += int64(len(t.Data))
	}
	return picked[:min(int64(len(picked)), max(s.MaxBytes/size, 1))]
}

// makeBatches makes batches of two, the same with neighbours swapped, of a size that is drawn, and of eight or as many as
// are allowed. It returns what is left of the time.
func (s *Set) makeBatches(left time.Duration) (time.Duration, error) {
	symbol := batchSymbol(s.Interface)
	if why := s.Interface.NoBatches(); why != "" {
		s.leaveOut(evidence.TrialBatch, why)
		return left, nil
	}
	picked := s.fitting(s.pick(otherCases))
	first, err := s.full(picked[0])
	if err != nil {
		return left, err
	}
	own := first[s.Interface.Inputs[0].Name].Shape[0]
	if own == 0 {
		return left, nil // nothing is stacked
	}
	most := int(min(s.Interface.Dims[symbol].Max/own, largeBatch))
	if most < 2 {
		s.leaveOut(evidence.TrialBatch, fmt.Sprintf("batches are not checked, since the largest size of %q is %d, and a case has %d of it",
			symbol, s.Interface.Dims[symbol].Max, own))
	}
	for i, b := range []struct {
		size    int
		swapped bool
	}{{2, false}, {2, true}, {s.drawn(2, most), false}, {most, false}} {
		if b.size > most || b.size == 0 || (i == 3 && most <= 2) {
			continue
		}
		what := fmt.Sprintf("%s=%d", symbol, own*int64(b.size))
		if b.swapped {
			what += " swapped"
		}
		cost := s.Run * time.Duration(b.size)
		n := affordable(left, cost, (len(picked)+b.size-1)/b.size) * b.size
		if n == 0 {
			s.leave(evidence.TrialBatch, what, cost, left)
			continue
		}
		left -= s.Run * time.Duration(n)
		if err := s.makeBatch(what, picked[:min(n, len(picked))], b.size, b.swapped); err != nil {
			return left, err
		}
	}
	return left, nil
}

// drawn draws a size between two; 0 if there is none, or none is to be drawn.
func (s *Set) drawn(above, below int) int {
	if s.Draw == nil || below-above < 2 {
		return 0
	}
	return above + 1 + s.Draw(below-above-1)
}

func (s *Set) makeBatch(what string, picked []slot, size int, swapped bool) error {
	t := trial{kind: evidence.TrialBatch, what: what, batch: size}
	for _, group := range byShard(picked) {
		made := s.shard(fmt.Sprintf("check-2-%03d-batch-%05d", len(s.trials), group[0].shard), batches(group, size, swapped))
		if err := s.store(made, s.full, tensor.Stack, size); err != nil {
			return err
		}
		t.shards = append(t.shards, made)
	}
	s.trials = append(s.trials, t)
	return nil
}
