package run

import (
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// SomeRows are rows of a shard, in order.
type SomeRows struct {
	Shard artifact.Shard
	Rows  []int // in the shard
}

// SpreadOver draws one case from each of n equal parts of a set. A set of n cases or fewer is taken whole. Copies of earlier cases are left out.
func SpreadOver(count int, copies map[int]bool, n int, draw func(n int) int) []int {
	own := OwnCases(count, copies)
	var numbers []int
	for _, at := range consistency.Spread(len(own), n, draw) {
		numbers = append(numbers, own[at])
	}
	return numbers
}

// OwnCases lists the numbers of cases that are no copies of an earlier one.
func OwnCases(count int, copies map[int]bool) []int {
	own := make([]int, 0, count)
	for number := range count {
		if !copies[number] {
			own = append(own, number)
		}
	}
	return own
}

// RowsIn finds cases, in order, by the shard that they are from.
func RowsIn(shards []artifact.Shard, numbers []int) []SomeRows {
	var picked []SomeRows
	first := 0
	for _, s := range shards {
		of := SomeRows{Shard: s}
		for ; len(numbers) > 0 && numbers[0] < first+s.Count; numbers = numbers[1:] {
			of.Rows = append(of.Rows, numbers[0]-first)
		}
		if first += s.Count; len(of.Rows) > 0 {
			picked = append(picked, of)
		}
	}
	return picked
}

// ShardsOf are the shards that hold picked rows alone, under their names.
func ShardsOf(picked []SomeRows) []artifact.Shard {
	var shards []artifact.Shard
	first := 0
	for _, of := range picked {
		shards = append(shards, artifact.Shard{File: of.Shard.File, First: first, Count: len(of.Rows)})
		first += len(of.Rows)
	}
	return shards
}

// Write copies the rows of a file of the shard in one folder to the same file in another.
func (of SomeRows) Write(from, to string) error {
	name := filepath.FromSlash(of.Shard.File)
	var parts []RowsOf
	for _, row := range of.Rows {
		if last := len(parts) - 1; last >= 0 && parts[last].End == int64(row) {
			parts[last].End++
			continue
		}
		parts = append(parts, RowsOf{filepath.Join(from, name), int64(row), int64(row) + 1, int64(of.Shard.Count)})
	}
	return WriteRows(filepath.Join(to, name), parts)
}
