package consistency

import (
	"fmt"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// makeBatches makes batches of two, and one batch of each larger size: the optimal and the largest declared one, and one that is
// drawn. It returns what is left of the time.
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
	declared := s.Interface.Dims[symbol]
	most := int(declared.Max / own)
	if most < smallBatch {
		s.leaveOut(evidence.TrialBatch, fmt.Sprintf("batches are not checked, since the largest size of %q is %d, and a case has %d of it",
			symbol, declared.Max, own))
		return left, nil
	}
	n := affordable(left, smallBatch*s.Run, (len(picked)+1)/smallBatch) * smallBatch
	small := trial{kind: evidence.TrialBatch, what: batchName(symbol, own*smallBatch), batch: smallBatch}
	if n == 0 {
		s.leave(small.kind, small.what, smallBatch*s.Run, left)
	} else if err := s.makeSmall(small, picked[:min(n, len(picked))]); err != nil {
		return left, err
	}
	left -= s.Run * time.Duration(n)
	for _, size := range []int{int(declared.Opt / own), most} {
		if left, err = s.makeBatch(symbol, own, size, left); err != nil {
			return left, err
		}
	}
	// One that the time allows is drawn, so that no more than the declared sizes are left out.
	return s.makeBatch(symbol, own, s.drawn(smallBatch, affordable(left, s.Run, most-1)+1), left)
}

func batchName(symbol string, size int64) string { return fmt.Sprintf("%s=%d", symbol, size) }

// drawn draws a size between two; 0 if there is none, or none is to be drawn.
func (s *Set) drawn(above, below int) int {
	if s.Draw == nil || below-above < 2 {
		return 0
	}
	return above + 1 + s.Draw(below-above-1)
}

// makeSmall makes many batches of few cases each.
func (s *Set) makeSmall(t trial, picked []slot) error {
	for _, group := range byShard(picked) {
		made := s.shard(fmt.Sprintf("check-2-%03d-batch-%05d", len(s.trials), group[0].shard), batches(group, t.batch))
		if err := s.store(made, s.full, tensor.Stack, t.batch); err != nil {
			return err
		}
		t.shards = append(t.shards, made)
	}
	s.trials = append(s.trials, t)
	return nil
}

// makeBatch makes one batch of so many cases, if there is none of that size. own is the size of one case.
func (s *Set) makeBatch(symbol string, own int64, size int, left time.Duration) (time.Duration, error) {
	to := setting{sizes: map[string]int64{symbol: own * int64(size)}, moved: []string{symbol}}
	made := func(t trial) bool { return t.batch > 0 && t.what == to.name() }
	if size <= smallBatch || slices.ContainsFunc(s.trials, made) {
		return left, nil
	}
	cases, ownSizes, err := s.alike(size)
	if err != nil {
		return left, err
	}
	if ownSizes != nil {
		ownSizes[symbol], to.sizes = to.sizes[symbol], ownSizes
	}
	declared := to.name()
	note, fits := to.fit(s.Interface, s.MaxBytes)
	fitting := int(to.sizes[symbol] / own)
	if !fits || fitting <= smallBatch {
		s.leaveFor(kindOf(size), declared, fmt.Sprintf("it takes more than %d MiB", s.MaxBytes>>20))
		return left, nil
	}
	size = fitting
	t := trial{kind: kindOf(size), what: batchName(symbol, own*int64(size)), note: note, batch: size}
	if cost := s.Run * time.Duration(size); cost > left {
		s.leave(t.kind, t.what, cost, left)
		return left, nil
	}
	left -= s.Run * time.Duration(size)
	return left, s.makeSmall(t, cases[:min(size, len(cases))])
}

// kindOf is what a batch of so many cases is a trial of. A large one is also compared with the reference model's.
func kindOf(size int) evidence.Trial {
	if size > largeBatch {
		return evidence.TrialDimension
	}
	return evidence.TrialBatch
}

// alike picks at most n cases of the shard with the most: those of one shard have one shape. It also returns the sizes of the first one;
// nil if they contradict each other.
func (s *Set) alike(n int) ([]slot, map[string]int64, error) {
	most := s.largestShard()
	var picked []slot
	for _, k := range s.spread(len(most.rows), n) {
		picked = append(picked, slot{most.shard, most.rows[k]})
	}
	one, err := s.full(picked[0])
	if err != nil {
		return nil, nil, err
	}
	own, contradiction := sizes(s.Interface, one)
	if contradiction != nil {
		own = nil
	}
	return picked, own, nil
}

// isStack reports whether a size of a symbol is one at which cases are stacked, for cases of a size of their own.
func isStack(i validators.Interface, symbol string, own, size int64) bool {
	return symbol == batchSymbol(i) && i.NoBatches() == "" && own > 0 && size > own && size%own == 0
}

// onlyBatch reports whether the batch is the only open dimension.
func (s *Set) onlyBatch() bool {
	symbols := s.Interface.Symbols()
	return len(symbols) == 1 && symbols[0] == batchSymbol(s.Interface)
}
