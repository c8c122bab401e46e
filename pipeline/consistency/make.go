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
	left -= 2 * o.Run * time.Duration(n)
	if wanted := (o.Repeats + 1) / 2; wanted > n {
		n = wanted // it is asked for, whatever it takes
	}
	if n == 0 {
		s.leave(evidence.TrialRepeat, "", 2*o.Run, o.Budget)
	} else if err := s.makeRepeat(n); err != nil {
		return nil, err
	}
	others := left / 2
	if s.onlyBatch() {
		others = min(others, otherCases*o.Run)
	}
	unspent, err := s.makeBatches(left - others)
	if err != nil {
		return nil, err
	}
	left, err = s.makeDimensions(others + unspent)
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
// form that they have in the cases, so that outputs are comparable with those of the cases. If there are too few cases for the runs that
// are wanted, all take more turns.
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
	once := s.repeat[len(s.repeat)/2:]
	for s.turns = 2; s.turns*len(picked) < s.Repeats; s.turns++ {
		for _, same := range once { // the same file by another name
			same.Name = fmt.Sprintf("check-1-turn-%06d-%05d.safetensors", s.turns, same.cases[0].shard)
			s.repeat = append(s.repeat, same)
		}
	}
	for _, group := range byShard(s.fitting(s.pick(min(n, s.loaded())))) {
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

// loaded is how many cases are run alone with each load of an engine, and as many in batches of two.
func (s *Set) loaded() int {
	return max(affordable(loadsTime, 2*loadsWanted*s.Run, otherCases), leastLoaded)
}

// Repeated is how many runs of cases the set repeats.
func (s *Set) Repeated() (runs int) {
	for _, repeated := range s.repeat {
		runs += len(repeated.cases)
	}
	return runs
}

// LoadCases is how many cases a [Loader] runs with each load, those in batches counted one by one.
func (s *Set) LoadCases() int { return 2 * s.loaded() }
