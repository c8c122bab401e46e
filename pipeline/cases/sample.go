package cases

import (
	"bytes"
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// Sampler keeps a random sample of the different cases that it is offered, within a number and a size.
// Every different case is as likely to be in the sample, whenever it came and however often. The same seed
// and the same cases give the same sample, in whatever order they come.
//
// Each case has a rank, which is the hash of the seed and of its inputs; the cases of the lowest ranks are
// kept (Cohen and Kaplan, "Summarizing data using bottom-k sketches", 2007). The zero Sampler keeps nothing.
// It is not safe for concurrent use.
type Sampler struct {
	Most     int   // cases
	MaxBytes int64 // of the data of all of them
	Seed     uint64

	known map[Sum]bool // those that are not offered again
	kept  rankedRows
	held  map[Sum]bool // ranks of kept
	bytes int64
	limit *Sum // ranks from here on were left out once
}

// Offered is the fate of a case.
type Offered string

// What becomes of a case that is offered.
const (
	Kept      Offered = "kept" // it may still give way to another
	Duplicate Offered = "duplicate"
	Passed    Offered = "passed" // others are in the sample
	TooLarge  Offered = "too large"
)

// Know makes Offer take a case for a duplicate.
func (s *Sampler) Know(sum Sum) {
	if s.known == nil {
		s.known = make(map[Sum]bool)
	}
	s.known[sum] = true
}

// Offer offers a case, by the sum of its inputs. The sampler copies the data of a case that it keeps.
func (s *Sampler) Offer(sum Sum, row Row) Offered {
	rank := rankOf(s.Seed, sum)
	size := row.Bytes()
	switch {
	case s.known[sum] || s.held[rank]:
		return Duplicate
	case size > s.MaxBytes:
		return TooLarge
	case s.limit != nil && bytes.Compare(rank[:], s.limit[:]) >= 0:
		return Passed
	}
	if s.held == nil {
		s.held = make(map[Sum]bool)
	}
	s.held[rank] = true
	heap.Push(&s.kept, rankedRow{rank, row.clone()})
	s.bytes += size
	for len(s.kept) > s.Most || s.bytes > s.MaxBytes {
		out := heap.Pop(&s.kept).(rankedRow)
		delete(s.held, out.rank)
		s.bytes -= out.row.Bytes()
		s.limit = &out.rank
	}
	if !s.held[rank] {
		return Passed
	}
	return Kept
}

// Len returns how many cases are in the sample.
func (s *Sampler) Len() int { return len(s.kept) }

// Rows returns the sample, in the order of the ranks, which is random and the same each time.
func (s *Sampler) Rows() []Row {
	sorted := slices.SortedFunc(slices.Values(s.kept), func(a, b rankedRow) int { return bytes.Compare(a.rank[:], b.rank[:]) })
	rows := make([]Row, len(sorted))
	for i, r := range sorted {
		rows[i] = r.row
	}
	return rows
}

func rankOf(seed uint64, sum Sum) Sum {
	return sha256.Sum256(binary.LittleEndian.AppendUint64(slices.Clone(sum[:]), seed))
}

func (r Row) clone() Row {
	out := maps.Clone(r)
	for name, t := range out {
		out[name] = tensor.Tensor{DType: t.DType, Shape: slices.Clone(t.Shape), Data: slices.Clone(t.Data)}
	}
	return out
}

type rankedRow struct {
	rank Sum
	row  Row
}

// rankedRows is a heap with the highest rank on top.
type rankedRows []rankedRow

func (r rankedRows) Len() int           { return len(r) }
func (r rankedRows) Less(i, j int) bool { return bytes.Compare(r[i].rank[:], r[j].rank[:]) > 0 }
func (r rankedRows) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }

// Push is for package heap.
func (r *rankedRows) Push(x any) { *r = append(*r, x.(rankedRow)) }

// Pop is for package heap.
func (r *rankedRows) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}
