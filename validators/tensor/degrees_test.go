package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// The noise of a case of n normal errors has n degrees of freedom, and few where few cases have most
// of it. With channels the one with the fewest counts.
func TestCaseDegrees(t *testing.T) {
	t.Parallel()
	compare := func(options tensor.Options, width int, engine func(value float64, row, channel int, noise *rand.Rand) float64) float64 {
		noise := rand.New(rand.NewPCG(8, 2))
		c := tensor.NewComparison(options)
		for row := range 2000 {
			want, got := make([]float64, width), make([]float64, width)
			for i := range want {
				want[i] = noise.NormFloat64()
				got[i] = engine(want[i], row, i, noise)
			}
			if err := c.Add(row, rowOf(t, want), rowOf(t, got)); err != nil {
				t.Fatal(err)
			}
		}
		return c.Result().CaseDegrees
	}
	noisy := func(v float64, _, _ int, n *rand.Rand) float64 { return v + 0.1*n.NormFloat64() }
	alike := func(v float64, _, _ int, _ *rand.Rand) float64 { return v + 0.5 }
	rare := func(v float64, row, channel int, n *rand.Rand) float64 {
		if row == 17 && channel == 0 {
			return v + 10
		}
		return v + 0.01*n.NormFloat64()
	}
	for _, c := range []struct {
		name      string
		options   tensor.Options
		width     int
		engine    func(float64, int, int, *rand.Rand) float64
		low, high float64
	}{
		{"no error", tensor.Options{}, 2, func(v float64, _, _ int, _ *rand.Rand) float64 { return v }, 0, 0},
		{"one normal error", tensor.Options{}, 1, noisy, 0.85, 1.15},
		{"twelve", tensor.Options{}, 12, noisy, 11, 13},
		{"twelve channels", tensor.Options{Channels: true}, 12, noisy, 0.8, 1},
		{"one large one", tensor.Options{}, 12, rare, 0.0009, 0.0012},
		{"one large one in a channel", tensor.Options{Channels: true}, 2, rare, 0.0009, 0.0012},
		{"all alike", tensor.Options{}, 1, alike, 1e6, 1e6},
		{"infinite", tensor.Options{}, 1, func(float64, int, int, *rand.Rand) float64 { return math.Inf(1) }, 0, 0},
	} {
		if got := compare(c.options, c.width, c.engine); !(got >= c.low && got <= c.high) {
			t.Errorf("%s: %v degrees of freedom, want %v to %v", c.name, got, c.low, c.high)
		}
	}
}
