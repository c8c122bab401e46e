package validators_test

import (
	"testing"

	"mlpromote.dev/mlpromote/validators"
)

// The batch leads all inputs and outputs and is nowhere else; where there is none, the first tensor that speaks against it is named.
func TestBatch(t *testing.T) {
	t.Parallel()
	open, other, two := validators.Dim{Symbol: "batch"}, validators.Dim{Symbol: "s1"}, validators.Dim{Size: 2}
	shape := func(dims ...validators.Dim) []validators.Dim { return dims }
	const none = "batches are not checked, since no dimension leads all inputs and outputs: "
	for name, c := range map[string]struct {
		x, y []validators.Dim
		max  int64
		want string
	}{
		"a batch":         {shape(open, two), shape(open), 8, ""},
		"a scalar":        {nil, shape(open), 8, none + `input "x" has no dimensions`},
		"a fixed size":    {shape(open), shape(two, open), 8, none + `output "y" has the fixed size 2 in front`},
		"two names":       {shape(open), shape(other), 8, none + `input "x" has "batch" in front, and output "y" has "s1"`},
		"twice":           {shape(open, open), shape(open), 8, none + `input "x" has "batch" in front and once more`},
		"no room for two": {shape(open), shape(open), 1, `batches are not checked, since the largest size of "batch" is 1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			iface := validators.Interface{Inputs: []validators.TensorInfo{{Name: "x", Shape: c.x}}, Outputs: []validators.TensorInfo{{Name: "y", Shape: c.y}},
				Dims: map[string]validators.DimRange{"batch": {Min: 1, Opt: 1, Max: c.max}}}
			if got := iface.NoBatches(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
