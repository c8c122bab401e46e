package consistency

import (
	"cmp"
	"slices"
)

// maxShards is how many shards the cases of a check are from.
const maxShards = 4

// pick chooses at most n cases, evenly from at most maxShards shards, in order. Which of those that are equally far apart is
// drawn, so that nobody knows before which cases are run again.
func (s *Set) pick(n int) []slot {
	var picked []slot
	own := s.ownRows()
	from := s.spread(len(own), min(maxShards, n))
	for i, at := range from {
		share := (n - len(picked)) / (len(from) - i)
		for _, k := range s.spread(len(own[at].rows), share) {
			picked = append(picked, slot{own[at].shard, own[at].rows[k]})
		}
	}
	return picked
}

// shardRows are rows of a shard.
type shardRows struct {
	shard int
	rows  []int
}

// ownRows lists the rows of each shard that are no copies of an earlier case, and leaves out shards without any.
func (s *Set) ownRows() []shardRows {
	var all []shardRows
	for i, shard := range s.Shards {
		of := shardRows{shard: i}
		for row := range shard.Count {
			if !s.Copies[shard.First+row] {
				of.rows = append(of.rows, row)
			}
		}
		if len(of.rows) > 0 {
			all = append(all, of)
		}
	}
	return all
}

func (s *Set) spread(count, n int) []int { return Spread(count, n, s.Draw) }

// Spread gives n of the numbers below count, or all, in order: one of each n-th part. draw gives a number below another; without it
// the first of each part is taken.
func Spread(count, n int, draw func(n int) int) []int {
	n = min(n, count)
	numbers := make([]int, n)
	for i := range numbers {
		first, next := i*count/n, (i+1)*count/n
		if numbers[i] = first; draw != nil {
			numbers[i] += draw(next - first)
		}
	}
	return numbers
}

// byShard groups slots by the shard that they are from: only such cases surely have one shape.
func byShard(slots []slot) [][]slot {
	var groups [][]slot
	for _, s := range slots {
		if n := len(groups); n > 0 && groups[n-1][0].shard == s.shard {
			groups[n-1] = append(groups[n-1], s)
		} else {
			groups = append(groups, []slot{s})
		}
	}
	return groups
}

// batches stacks cases in the reverse of their order, so many at a time. Where the last batch is
// not full, it is filled up from the front.
func batches(cases []slot, size int) []slot {
	order := slices.Clone(cases)
	slices.Reverse(order)
	for i := 0; len(order)%size != 0; i++ {
		order = append(order, order[i])
	}
	return order
}

// largestShard is the shard with the most cases that are no copies.
func (s *Set) largestShard() shardRows {
	return slices.MaxFunc(s.ownRows(), func(a, b shardRows) int { return cmp.Compare(len(a.rows), len(b.rows)) })
}
