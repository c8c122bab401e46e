package stats

import (
	"cmp"
	"math"
	"slices"
)

// RatioBounds returns the one-sided bounds of the ratio of medians, a's over b's, by a hierarchical
// bootstrap: it draws blocks with replacement, and then samples within each. A block has the
// samples of one process, and most of the variation is between blocks: samples of one block are
// not independent (Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013). With
// as many blocks on both sides, block i of a was measured next to block i of b: the two are drawn
// together, so that a drift of the machine that meets both cancels. The medians are those over all
// samples of a side; the bounds are percentiles of the resampled ratios, with ranks moved outwards
// for few blocks.
//
// Fewer than 6 blocks on a side, an empty block, a value that is not a positive number, and sides
// without any variation give 0 and +Inf.
func RatioBounds(a, b [][]float64, level float64, seed uint64) (lower, upper float64) {
	if !(level > 0 && level < 1) || !measured(a) || !measured(b) || (constant(a) && constant(b)) {
		return 0, math.Inf(1)
	}
	above, below, d := newSamples(a), newSamples(b), newDraws(seed)
	ratios := make([]float64, min(4_000, max(500, 40_000_000/(len(above.values)+len(below.values)))))
	chosen := make([]int, max(len(a), len(b)))
	choose := func(blocks int) []int {
		for i := range blocks {
			chosen[i] = d.below(blocks)
		}
		return chosen[:blocks]
	}
	for i := range ratios {
		ofA := above.median(choose(len(a)), d)
		if len(a) != len(b) {
			choose(len(b))
		}
		ratios[i] = ofA / below.median(chosen[:len(b)], d)
	}
	slices.Sort(ratios)
	rank := int(tailFor(1-level, min(len(a), len(b))) * float64(len(ratios)))
	return ratios[rank], ratios[len(ratios)-1-rank]
}

// measured reports whether blocks can be compared.
func measured(blocks [][]float64) bool {
	for _, block := range blocks {
		if len(block) == 0 || slices.ContainsFunc(block, func(v float64) bool { return !(v > 0) || math.IsInf(v, 1) }) {
			return false
		}
	}
	return len(blocks) >= minBlocks
}

func constant(blocks [][]float64) bool {
	for _, block := range blocks {
		if slices.Min(block) != blocks[0][0] || slices.Max(block) != blocks[0][0] {
			return false
		}
	}
	return true
}

// samples is those of a side in ascending order, and of each block where its samples are there.
type samples struct {
	values []float64
	places [][]int
	counts []int // of the resample in work: how often each value was drawn
}

func newSamples(blocks [][]float64) samples {
	type place struct{ block, sample int }
	var all []place
	s := samples{places: make([][]int, len(blocks))}
	for i, block := range blocks {
		s.places[i] = make([]int, len(block))
		for j := range block {
			all = append(all, place{i, j})
		}
	}
	slices.SortStableFunc(all, func(p, q place) int { return cmp.Compare(blocks[p.block][p.sample], blocks[q.block][q.sample]) })
	for at, p := range all {
		s.values = append(s.values, blocks[p.block][p.sample])
		s.places[p.block][p.sample] = at
	}
	s.counts = make([]int, len(all))
	return s
}

// median draws the samples of the chosen blocks again and returns the median of what it drew.
func (s samples) median(chosen []int, d draws) float64 {
	clear(s.counts)
	total := 0
	for _, block := range chosen {
		places := s.places[block]
		for range places {
			s.counts[places[d.below(len(places))]]++
		}
		total += len(places)
	}
	first, seen := -1, 0
	for i, n := range s.counts {
		seen += n
		if first < 0 && 2*seen >= total {
			first = i
		}
		if 2*seen > total {
			return s.values[first]/2 + s.values[i]/2
		}
	}
	return s.values[len(s.values)-1] // not reached: all are seen
}

// tailFor is the tail of the percentiles for a level, with few blocks: a percentile bootstrap is
// too narrow by what Student's t differs from the normal distribution and by sqrt((n-1)/n)
// (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015, 5.3).
func tailFor(alpha float64, blocks int) float64 {
	free := float64(blocks - 1)
	if alpha >= 0.5 {
		return alpha
	}
	// t^2/(free+t^2) has the distribution Beta(1/2, free/2).
	share := betaQuantile(0.5, free/2, 2*alpha, true)
	t := math.Sqrt(free * share / (1 - share))
	tail := math.Erfc(t*math.Sqrt(float64(blocks)/free)/math.Sqrt2) / 2
	return math.Round(tail*1e9) / 1e9 // the digits on which all platforms agree
}
