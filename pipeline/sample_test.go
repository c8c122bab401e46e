package pipeline

import (
	"reflect"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Integers are exact, unless the graph rounds activations to them. Tolerances of floats follow the range.
func TestCrossCheckTolerance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		quantized, half bool
		dtype           tensor.DType
		values          float64
		want            tensor.Options
	}{
		"float32":              {dtype: tensor.Float32, values: 20, want: tensor.Options{ATol: 0.02, RTol: 1e-4}},
		"one number":           {dtype: tensor.Float64, want: tensor.Options{ATol: 1e-6, RTol: 1e-4}},
		"float16":              {dtype: tensor.Float16, values: 20, want: tensor.Options{ATol: 0.4, RTol: 1e-2}},
		"float16 within":       {half: true, dtype: tensor.Float32, values: 20, want: tensor.Options{ATol: 0.4, RTol: 1e-2}},
		"int64":                {dtype: tensor.Int64, values: 20},
		"uint8":                {dtype: tensor.Uint8, values: 20},
		"bool":                 {quantized: true, dtype: tensor.Bool, values: 1},
		"quantized float":      {quantized: true, dtype: tensor.Float32, values: 20, want: tensor.Options{ATol: 2, RTol: 1e-2}},
		"quantized half":       {quantized: true, dtype: tensor.Float16, values: 20, want: tensor.Options{ATol: 2, RTol: 1e-2}},
		"quantized uint8":      {quantized: true, dtype: tensor.Uint8, values: 200, want: tensor.Options{ATol: 20}},
		"quantized narrow":     {quantized: true, dtype: tensor.Int8, values: 5, want: tensor.Options{ATol: 1}},
		"quantized, and class": {quantized: true, dtype: tensor.Int64, values: 200},
	} {
		allowed := crossCheckFloat32
		switch {
		case c.quantized:
			allowed = crossCheckQuantized
		case c.half:
			allowed = crossCheckHalf
		}
		if got := allowed.options(c.dtype, c.values); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: tolerances %+v, want %+v", name, got, c.want)
		}
	}
}

// The first cases of a sample are spread over all cases, and a sample of all has each once.
func TestSampleOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ count, n int }{{1, 1}, {3, 64}, {64, 64}, {300, 64}, {100_000, 64}, {10, 4}} {
		got := sampleOf(c.count, c.n)
		sorted := slices.Sorted(slices.Values(got))
		if want := min(c.count, c.n); len(got) != want || len(slices.Compact(slices.Clone(sorted))) != want || sorted[0] < 0 || sorted[want-1] >= c.count {
			t.Errorf("%d of %d cases: %v, want as many different numbers", c.n, c.count, got)
		}
		for i := range len(sorted) - 1 {
			if gap := sorted[i+1] - sorted[i]; float64(gap) > 3*float64(c.count)/float64(len(got))+1 {
				t.Errorf("%d of %d cases: none of %d between %d and %d", c.n, c.count, gap-1, sorted[i], sorted[i+1])
			}
		}
	}
}

// A sample is bounded by number and by bytes, and never empty.
func TestCrossCheckCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size        int64
		count, want int
	}{{0, 3, 3}, {100, 100, 64}, {1 << 30, 64, 4}, {1 << 40, 3, 1}, {64 << 20, 1, 1}} {
		if got := crossCheckCount(c.size, c.count); got != c.want {
			t.Errorf("%d of %d cases of %d bytes, want %d", got, c.count, c.size, c.want)
		}
	}
}

// A case is in the shard whose numbers it is among; no shard has what comes after the last.
func TestShardOf(t *testing.T) {
	t.Parallel()
	shards := []registry.Shard{{First: 0, Count: 3}, {First: 3, Count: 1}, {First: 4, Count: 2}}
	for number, want := range []int{0, 0, 0, 1, 2, 2, -1} {
		if got := shardOf(shards, number); got != want {
			t.Errorf("case %d is in shard %d, want %d", number, got, want)
		}
	}
}
