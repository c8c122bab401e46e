package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// systematicOf compares cases of some channels: reference gives a value, and engine what is computed in its place.
func systematicOf(t *testing.T, cases, width int, units bool, reference func(i int, r *rand.Rand) float64,
	engine func(v float64, channel int, r *rand.Rand) float64) float64 {
	t.Helper()
	random := rand.New(rand.NewPCG(11, 7))
	c := tensor.NewComparison(tensor.Options{Systematic: true, Channels: units})
	for n := range cases {
		want, got := make([]float64, width), make([]float64, width)
		for i := range want {
			want[i] = reference(n*width+i, random)
			got[i] = engine(want[i], i, random)
		}
		if err := c.Add(n, rowOf(t, want), rowOf(t, got)); err != nil {
			t.Fatal(err)
		}
	}
	return c.Result().Systematic
}

func normal(_ int, r *rand.Rand) float64 { return r.NormFloat64() }

// A factor counts once where other errors are as large, in a channel, or twice as large, in all values, and four times
// beyond: noise of a model that quantizes badly has such factors, and that of one that quantizes well has not.
func TestSystematicCountsWhatStandsOut(t *testing.T) {
	t.Parallel()
	const cases, factor = 6_000, 0.1
	chance := func(noise float64) float64 { return 3 * noise / math.Sqrt(cases) }
	for name, c := range map[string]struct {
		all    bool // channels, in place of one
		noise  float64
		counts float64 // times what exceeds share
		share  float64
	}{
		"a channel, more noise":     {false, 0.2, 1, 0},
		"a channel, as much noise":  {false, 0.095, 1, 0},
		"a channel, less noise":     {false, 0.05, 4, 1},
		"a channel, hardly noise":   {false, 0.001, 4, 1},
		"all, more noise":           {true, 0.3, 1, 0},
		"all, twice as much noise":  {true, 0.19, 1, 0},
		"all, as much noise":        {true, 0.1, 4, 0.5},
		"all, hardly noise":         {true, 0.001, 4, 0.5},
		"a channel, three quarters": {false, 0.075, 1, 0},
		"all, one and a half times": {true, 0.15, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := systematicOf(t, cases, 8, false, normal, func(v float64, channel int, r *rand.Rand) float64 {
				noise := c.noise * r.NormFloat64()
				if c.all || channel == 3 {
					return v + factor*v + noise
				}
				return v + noise
			})
			want := c.counts * (factor - chance(c.noise) - c.share*c.noise)
			if math.Abs(got-want) > 0.06*want+0.004 {
				t.Errorf("noise of %v spreads and a factor of %v: systematic errors of %v spreads, want %v", c.noise, factor, got, want)
			}
		})
	}
}

// What bends all values alike shows, as a scaled input of a sigmoid does, by a sixth for each channel. Where channels have units
// of their own, or a few values are far out, it is no sign of a fault.
func TestSystematicFollowsACurve(t *testing.T) {
	t.Parallel()
	const size, noise = 0.1, 0.01
	cube := func(v float64) float64 { return v + size*(v*v*v-3*v)/math.Sqrt(6) }
	square := func(v float64) float64 { return v + size*(v*v-1)/math.Sqrt2 }
	heavy := func(i int, r *rand.Rand) float64 {
		v := r.NormFloat64()
		if i%50 == 0 {
			v *= 5
		}
		return v
	}
	first := func(far float64) func(int, *rand.Rand) float64 {
		return func(i int, r *rand.Rand) float64 {
			if i == 0 {
				return far
			}
			return r.NormFloat64()
		}
	}
	for name, c := range map[string]struct {
		width     int
		units     bool
		reference func(int, *rand.Rand) float64
		engine    func(float64) float64
		want      float64
	}{
		"cube":                          {6, false, normal, cube, 4 * (size - noise/2)},
		"square":                        {6, false, normal, square, 4 * (size - noise/2)},
		"of 12 channels":                {12, false, normal, cube, 4 * (size - noise/2)},
		"of 3 channels":                 {3, false, normal, cube, 4 * (size/2 - noise/2)},
		"of one":                        {1, false, normal, square, 4 * (size/6 - noise/2)},
		"units":                         {6, true, normal, square, 0},
		"a few values far out":          {6, false, heavy, square, 0},
		"the first within 10 spreads":   {6, false, first(9.8), square, 4 * (size - noise/2)},
		"the first 10.3 spreads away":   {6, false, first(10.3), square, 0},
		"the first -10.3 spreads away":  {6, false, first(-10.3), square, 0},
		"the first -9.8 spreads away":   {6, false, first(-9.8), square, 4 * (size - noise/2)},
		"far from 0, with small values": {6, false, func(_ int, r *rand.Rand) float64 { return 1e3 + r.NormFloat64() }, func(v float64) float64 { return 1e3 + cube(v-1e3) }, 4 * (size - noise/2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := systematicOf(t, 6_000, c.width, c.units, c.reference, func(v float64, _ int, r *rand.Rand) float64 {
				return c.engine(v) + noise*r.NormFloat64()
			})
			if math.Abs(got-c.want) > 0.05*c.want+0.08 { // few values far out have a line by chance
				t.Errorf("systematic errors of %v spreads, want %v", got, c.want)
			}
		})
	}
}

// A curve takes 20 values. Two values have no square, and equal ones nothing.
func TestSystematicCurveOfFewValues(t *testing.T) {
	t.Parallel()
	steps := func(width int) func(int, *rand.Rand) float64 { // symmetric, so that no line explains a square
		return func(i int, _ *rand.Rand) float64 { return float64(i) - float64(5*width-1)/2 }
	}
	square := func(v float64, _ int, _ *rand.Rand) float64 { return v + 0.01*v*v }
	if got := systematicOf(t, 5, 4, false, steps(4), square); got < 0.01 {
		t.Errorf("a square in 5 cases of 4 values: systematic errors of %v spreads, want some", got)
	}
	few := systematicOf(t, 5, 3, false, steps(3), func(v float64, _ int, _ *rand.Rand) float64 { return v + 0.01*(v*v-56.0/3) })
	if few > 1e-9 {
		t.Errorf("a square in 15 values: systematic errors of %v spreads, want none", few)
	}
	for name, reference := range map[string]func(int, *rand.Rand) float64{
		"two":   func(i int, _ *rand.Rand) float64 { return float64(i % 2) },
		"equal": func(int, *rand.Rand) float64 { return 3 },
		"tiny":  func(_ int, r *rand.Rand) float64 { return 1e-70 * r.NormFloat64() },
		"huge":  func(_ int, r *rand.Rand) float64 { return 1e60 * r.NormFloat64() },
	} {
		got := systematicOf(t, 100, 6, false, reference, func(v float64, _ int, r *rand.Rand) float64 { return v * (1 + 0.01*r.NormFloat64()) })
		if !(got >= 0 && got < 0.01) {
			t.Errorf("%s values with noise of a hundredth: systematic errors of %v spreads, want hardly any", name, got)
		}
	}
}
