package pipeline

import (
	"maps"
	"testing"

	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format"
)

// Where cases have sizes, a draft says them, within what the graph can run.
func TestSizesOfCases(t *testing.T) {
	t.Parallel()
	sizes := func(least, usual, most int64) map[string]validators.DimRange {
		return map[string]validators.DimRange{"size": {Min: least, Opt: usual, Max: most}}
	}
	for name, c := range map[string]struct {
		graph, seen, want map[string]validators.DimRange
	}{
		"within the graph's":   {sizes(32, 224, 256), sizes(1, 64, 64), sizes(32, 64, 256)},
		"larger":               {sizes(32, 224, 256), sizes(1, 320, 320), sizes(32, 320, 320)},
		"along which they lie": {sizes(2, 16, 64), sizes(1, 1, 64), sizes(1, 1, 64)},
		"a graph that is mum":  {nil, sizes(1, 24, 64), sizes(1, 24, 64)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := withSizesOf(validators.Interface{Dims: c.graph}, validators.Interface{Dims: c.seen})
			if !maps.Equal(got.Dims, c.want) {
				t.Errorf("sizes %v, want %v", got.Dims, c.want)
			}
		})
	}
}

// Two inputs with one open dimension get the sizes that both can have, for the reason of the one that
// allows fewer.
func TestSizesOfTwoInputs(t *testing.T) {
	t.Parallel()
	a := format.Sizes{Min: 2, Opt: 16, Max: 64, Why: "a"}
	for name, c := range map[string]struct{ b, want format.Sizes }{
		"the same":                 {format.Sizes{Min: 2, Opt: 16, Max: 64, Why: "b"}, a},
		"wider":                    {format.Sizes{Min: 1, Opt: 16, Max: 99, Why: "b"}, a},
		"a smaller most":           {format.Sizes{Min: 2, Opt: 8, Max: 32, Why: "b"}, format.Sizes{Min: 2, Opt: 16, Max: 32, Why: "b"}},
		"a larger least":           {format.Sizes{Min: 24, Opt: 24, Max: 64, Why: "b"}, format.Sizes{Min: 24, Opt: 24, Max: 64, Why: "b"}},
		"less than its usual size": {format.Sizes{Min: 2, Opt: 4, Max: 8, Why: "b"}, format.Sizes{Min: 2, Opt: 8, Max: 8, Why: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := bothSizes(a, c.b); got != c.want {
				t.Errorf("sizes %+v, want %+v", got, c.want)
			}
		})
	}
}
