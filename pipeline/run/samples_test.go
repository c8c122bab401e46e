package run

import (
	"path/filepath"
	"reflect"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Picked cases are from all shards, at equal distances.
func TestSpreadOver(t *testing.T) {
	t.Parallel()
	type counts = []int
	for name, c := range map[string]struct {
		counts counts
		n      int
		copies map[int]bool
		want   [][]int // by shard; nil: none
	}{
		"all":              {counts{2, 1}, 32, nil, [][]int{{0, 1}, {0}}},
		"half of one":      {counts{8}, 4, nil, [][]int{{0, 2, 4, 6}}},
		"a shard per case": {counts{1, 1, 1, 1, 1, 1}, 3, nil, [][]int{{0}, nil, {0}, nil, {0}, nil}},
		"unequal shards":   {counts{1, 7, 2}, 5, nil, [][]int{{0}, {1, 3, 5}, {0}}},
		"no copies":        {counts{1, 7, 2}, 5, map[int]bool{1: true, 2: true, 3: true, 5: true}, [][]int{{0}, {3, 5, 6}, {0}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var shards []artifact.Shard
			total := 0
			for i, count := range c.counts {
				total += count
				shards = append(shards, artifact.Shard{File: string(rune('a' + i)), Count: count})
			}
			got, first := make([][]int, len(shards)), 0
			picked := RowsIn(shards, SpreadOver(total, c.copies, c.n, nil))
			for _, of := range picked {
				got[of.Shard.File[0]-'a'] = of.Rows
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("picked %v, want %v", got, c.want)
			}
			for i, s := range ShardsOf(picked) {
				if s.First != first || s.Count != len(picked[i].Rows) || s.File != picked[i].Shard.File {
					t.Errorf("shard %d is %+v, want %d rows from %d", i, s, len(picked[i].Rows), first)
				}
				first += s.Count
			}
		})
	}
}

// Rows are copied in order, also such as do not follow one another.
func TestWriteSomeRows(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	x, err := tensor.New([]float32{0, 1, 2, 3, 4, 5}, 6, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := cases.WriteShard(filepath.Join(from, "a"), map[string]tensor.Tensor{"x": x}); err != nil {
		t.Fatal(err)
	}
	of := SomeRows{artifact.Shard{File: "a", Count: 6}, []int{0, 2, 3, 5}}
	if err := of.Write(from, to); err != nil {
		t.Fatal(err)
	}
	got, err := tensorfile.ReadFile(filepath.Join(to, "a"), tensorfile.Limits{})
	if err != nil || !reflect.DeepEqual(got["x"].Float64s(), []float64{0, 2, 3, 5}) {
		t.Errorf("wrote %v (%v), want rows 0, 2, 3 and 5", got["x"], err)
	}
}
