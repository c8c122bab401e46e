package tensor_test

import (
	"fmt"
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
		"tails of a kurtosis of 6":      {6, false, laplace, func(v float64) float64 { return v + size*(v*v-2)/math.Sqrt(20)*math.Sqrt2 }, 0},
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

// laplace has a kurtosis of 6.
func laplace(_ int, r *rand.Rand) float64 {
	return math.Copysign(r.ExpFloat64(), r.Float64()-0.5)
}

// cubic is a polynomial of third degree, by the powers of its coefficients.
type cubic [4]float64

func (p cubic) of(v float64) float64 { return p[0] + v*(p[1]+v*(p[2]+v*p[3])) }

// orthogonal returns the polynomials up to third degree at right angles to each other over values, with a mean square of 0.01, or 0
// where the values are too few for one.
func orthogonal(reference func(int, *rand.Rand) float64) (all [4]cubic) {
	var values []float64
	random := rand.New(rand.NewPCG(9, 1))
	for i := range 100_000 {
		if v := reference(i, random); v > -1e30 {
			values = append(values, v)
		}
	}
	mean := func(p, q cubic) float64 {
		sum := 0.0
		for _, v := range values {
			sum += p.of(v) * q.of(v)
		}
		return sum / float64(len(values))
	}
	for k := range all {
		all[k][k] = 1
		for _, lower := range all[:k] {
			along := mean(all[k], lower) / 0.01
			for i := range lower {
				all[k][i] -= along * lower[i]
			}
		}
		size := math.Sqrt(mean(all[k], all[k]))
		for i := range all[k] {
			if all[k][i] *= 0.1 / size; size < 1e-6 {
				all[k][i] = 0
			}
		}
	}
	return all
}

// Whatever a polynomial of third degree makes of the values is explained, however they are distributed, and values that stand for
// infinity say nothing.
func TestSystematicExplainsEveryCubic(t *testing.T) {
	t.Parallel()
	const noise = 0.001
	for name, reference := range map[string]func(i int, r *rand.Rand) float64{
		"normal":           normal,
		"uniform":          func(_ int, r *rand.Rand) float64 { return r.Float64() },
		"skewed":           func(_ int, r *rand.Rand) float64 { u := r.Float64(); return u * u * u * u },
		"logistic, of 4.2": func(_ int, r *rand.Rand) float64 { u := r.Float64(); return math.Log(u / (1 - u)) },
		"three values":     func(_ int, r *rand.Rand) float64 { return float64(r.IntN(3)) },
		"with what is masked": func(i int, r *rand.Rand) float64 {
			return map[bool]float64{true: -3e38, false: r.NormFloat64()}[i%60 == 0]
		},
	} {
		at := orthogonal(reference)
		for _, p := range []cubic{{0, 0, 0, 0.1}, {0, 0, 0.1, 0}, {0.03, -0.07, 0.1, -0.09}, {-0.1, 0.05, 0.02, 0.01}, at[2], at[3]} {
			if p == (cubic{}) { // three values have no cube
				continue
			}
			t.Run(fmt.Sprint(name, p), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(3, 1))
				var n, sum, squares, err2 float64
				for i := range 100_000 {
					if v := reference(i, random); v > -1e30 {
						n, sum, squares, err2 = n+1, sum+v, squares+v*v, err2+p.of(v)*p.of(v)
					}
				}
				sd := math.Sqrt(squares/n - sum/n*sum/n)
				want := 4 * (math.Sqrt(err2/n)/sd - noise/2)
				got := systematicOf(t, 6_000, 6, false, reference, func(v float64, _ int, r *rand.Rand) float64 {
					if v < -1e30 {
						return v
					}
					return v + p.of(v) + noise*sd*r.NormFloat64()
				})
				if math.Abs(got-want) > 0.045*want {
					t.Errorf("systematic errors of %v spreads, want %v", got, want)
				}
			})
		}
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
