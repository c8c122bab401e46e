package pipeline

import (
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// someRows are rows of a shard, in order.
type someRows struct {
	shard registry.Shard
	rows  []int // in the shard
}

// spreadOver draws one case from each of n equal parts of a set. A set of n cases or fewer is taken whole. Copies of earlier cases are left out.
func spreadOver(count int, copies map[int]bool, n int, draw func(n int) int) []int {
	own := ownCases(count, copies)
	var numbers []int
	for _, at := range consistency.Spread(len(own), n, draw) {
		numbers = append(numbers, own[at])
	}
	return numbers
}

// ownCases lists the numbers of cases that are no copies of an earlier one.
func ownCases(count int, copies map[int]bool) []int {
	own := make([]int, 0, count)
	for number := range count {
		if !copies[number] {
			own = append(own, number)
		}
	}
	return own
}

// rowsIn finds cases, in order, by the shard that they are from.
func rowsIn(shards []registry.Shard, numbers []int) []someRows {
	var picked []someRows
	first := 0
	for _, s := range shards {
		of := someRows{shard: s}
		for ; len(numbers) > 0 && numbers[0] < first+s.Count; numbers = numbers[1:] {
			of.rows = append(of.rows, numbers[0]-first)
		}
		if first += s.Count; len(of.rows) > 0 {
			picked = append(picked, of)
		}
	}
	return picked
}

// shardsOf are the shards that hold picked rows alone, under their names.
func shardsOf(picked []someRows) []registry.Shard {
	var shards []registry.Shard
	first := 0
	for _, of := range picked {
		shards = append(shards, registry.Shard{File: of.shard.File, First: first, Count: len(of.rows)})
		first += len(of.rows)
	}
	return shards
}

// write copies the rows of a file of the shard in one folder to the same file in another.
func (of someRows) write(from, to string) error {
	name := filepath.FromSlash(of.shard.File)
	var parts []rowsOf
	for _, row := range of.rows {
		if last := len(parts) - 1; last >= 0 && parts[last].end == int64(row) {
			parts[last].end++
			continue
		}
		parts = append(parts, rowsOf{filepath.Join(from, name), int64(row), int64(row) + 1, int64(of.shard.Count)})
	}
	return writeRows(filepath.Join(to, name), parts)
}

// plainInput writes picked cases and their golden outputs below a folder, and gives the cases as an input of a run.
func (v verification) plainInput(of someRows, dir string) (toolchain.Input, error) {
	cases := filepath.Join(dir, "cases")
	if err := of.write(v.cases.dir, cases); err != nil {
		return toolchain.Input{}, err
	}
	if err := of.write(v.golden.dir, filepath.Join(dir, "golden")); err != nil {
		return toolchain.Input{}, err
	}
	return toolchain.FileInput(toolchain.RoleCases, of.shard.File, filepath.Join(cases, filepath.FromSlash(of.shard.File)))
}
