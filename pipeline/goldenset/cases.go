package goldenset

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// CaseFiles writes each case of a sample to a file of its own in dir. files holds the file of each shard.
func CaseFiles(sample []int, shards []artifact.Shard, files []string, dir string) ([]toolchain.Input, error) {
	var inputs []toolchain.Input
	for i, number := range sample {
		shard := ShardOf(shards, number)
		row := int64(number - shards[shard].First)
		to := filepath.Join(dir, CaseFile(i))
		if err := run.WriteRows(to, []run.RowsOf{{Path: files[shard], First: row, End: row + 1, Count: int64(shards[shard].Count)}}); err != nil {
			return nil, err
		}
		in, err := toolchain.FileInput(toolchain.RoleCases, CaseFile(i), to)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// CaseFile names the file of the i-th case of the sample.
func CaseFile(i int) string { return fmt.Sprintf("case-%05d.safetensors", i) }

// SampleSize is how many of count cases of size bytes together are in the sample: at least
// one.
func SampleSize(size int64, count int) int {
	return max(1, min(count, MostCases, int(MostBytes/max(size/int64(max(count, 1)), 1))))
}

// Sample lists n of the numbers [0, count), each once, so that every first part of the list is
// spread over all: multiples of the golden ratio, modulo 1. It is the same list every time.
func Sample(count, n int) []int {
	taken := make(map[int]bool, n)
	var list []int
	for i := 0; len(list) < min(n, count); i++ {
		_, at := math.Modf(0.5 + float64(i)*math.Phi)
		number := min(int(at*float64(count)), count-1)
		if !taken[number] {
			taken[number] = true
			list = append(list, number)
		}
	}
	return list
}

// ShardOf finds the shard of a case.
func ShardOf(shards []artifact.Shard, number int) int {
	return slices.IndexFunc(shards, func(s artifact.Shard) bool { return number < s.First+s.Count })
}
