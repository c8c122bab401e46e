package capture

import (
	"maps"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/capture/inference"
	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// An input without a batch is hashed once for all rows of a request, and a case is the same as one that
// came alone.
func TestSharedInputsAreHashedOnce(t *testing.T) {
	t.Parallel()
	x, z := vector(t, "x", 1, 2, 3), vector(t, "z", 4, 5)
	b := &batching{known: map[string]bool{"x": true, "z": false}}
	rows, _, err := b.split([]inference.Tensor{x, z})
	if err != nil {
		t.Fatal(err)
	}
	shared := b.shared(rows)
	if got := slices.Sorted(maps.Keys(shared)); !slices.Equal(got, []string{"z"}) {
		t.Fatalf("sums are shared of %v, want of z", got)
	}
	seen := make(map[cases.Sum]bool)
	for i, row := range rows {
		if sumOf(row, shared) != sumOf(row, nil) {
			t.Errorf("case %d has another sum alone", i)
		}
		seen[sumOf(row, shared)] = true
	}
	if len(rows) != 3 || len(seen) != 3 {
		t.Errorf("%d cases have %d sums, want 3 and 3", len(rows), len(seen))
	}
	clear(rows[0]["z"].Data)
	if !seen[sumOf(rows[0], shared)] {
		t.Error("the data of z was read again")
	}
}

func vector(t *testing.T, name string, values ...float32) inference.Tensor {
	t.Helper()
	v, err := tensor.New(values, int64(len(values)))
	if err != nil {
		t.Fatal(err)
	}
	return inference.Tensor{Name: name, Tensor: v}
}
