package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// systematic compares rows of three values, normal with a standard deviation of 2, with what make makes of them.
func systematic(t *testing.T, rows int, channels bool, engine func(value float64, channel int, noise *rand.Rand) float64) float64 {
	t.Helper()
	noise := rand.New(rand.NewPCG(5, 7))
	c := tensor.NewComparison(tensor.Options{Systematic: true, Channels: channels})
	for row := range rows {
		var want, got []float64
		for channel := range 3 {
			value := 10 + 2*noise.NormFloat64()
			want, got = append(want, value), append(got, engine(value, channel, noise))
		}
		if err := c.Add(row, rowOf(t, want), rowOf(t, got)); err != nil {
			t.Fatal(err)
		}
	}
	return c.Result().Systematic
}

func rowOf(t *testing.T, values []float64) tensor.Tensor {
	t.Helper()
	made, err := tensor.New(values, 1, int64(len(values)))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// A factor of a channel shows at its size, an offset at a sixth of it, both four times beyond the noise of 0.01, and noise
// does not, however few values there are.
func TestSystematicShowsOffsetsAndFactors(t *testing.T) {
	t.Parallel()
	only := func(which int, change func(float64) float64) func(float64, int, *rand.Rand) float64 {
		return func(v float64, channel int, noise *rand.Rand) float64 {
			if channel == which {
				v = change(v)
			}
			return v + 0.02*noise.NormFloat64()
		}
	}
	for name, c := range map[string]struct {
		make      func(float64, int, *rand.Rand) float64
		low, high float64
	}{
		"equal":            {func(v float64, _ int, _ *rand.Rand) float64 { return v }, 0, 0},
		"noise":            {func(v float64, _ int, n *rand.Rand) float64 { return v + 0.4*n.NormFloat64() }, 0, 0.02},
		"offset":           {only(1, func(v float64) float64 { return v + 0.2 }), 0.0255, 0.0275}, // a sixth of 0.1
		"factor":           {only(2, func(v float64) float64 { return 10 + (v-10)*1.2 }), 0.73, 0.77},
		"and of its mean":  {only(0, func(v float64) float64 { return v * 1.1 }), 0.46, 0.5}, // a sixth of a mean of 5 spreads times 0.1, and 0.1
		"infinite element": {func(float64, int, *rand.Rand) float64 { return math.Inf(1) }, math.Inf(1), math.Inf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, channels := range []bool{false, true} {
				if got := systematic(t, 2000, channels, c.make); !(got >= c.low && got <= c.high) {
					t.Errorf("per channel %t: systematic errors of %v spreads, want %v to %v", channels, got, c.low, c.high)
				}
			}
		})
	}
	few := systematic(t, 8, false, func(v float64, _ int, n *rand.Rand) float64 { return v + 0.4*n.NormFloat64() })
	if few > 0.1 {
		t.Errorf("noise of 0.2 spreads in 8 rows: systematic errors of %v spreads, want none or few", few)
	}
}

// What all channels have alike counts more than what one has: it is taken where they have one unit, an offset in
// full from six channels on. There is hardly other noise, so that all of it counts four times.
func TestSystematicOfAllChannels(t *testing.T) {
	t.Parallel()
	compare := func(width int, channels bool, engine func(float64) float64) float64 {
		noise := rand.New(rand.NewPCG(3, 7))
		c := tensor.NewComparison(tensor.Options{Systematic: true, Channels: channels})
		for row := range 2000 {
			want, got := make([]float64, width), make([]float64, width)
			for i := range want {
				want[i] = 1000*float64(i%2) + noise.NormFloat64()
				got[i] = engine(want[i]) + 0.01*noise.NormFloat64()
			}
			if err := c.Add(row, rowOf(t, want), rowOf(t, got)); err != nil {
				t.Fatal(err)
			}
		}
		return c.Result().Systematic
	}
	for _, c := range []struct {
		name     string
		width    int
		channels bool
		engine   func(float64) float64
		want     float64 // in the spread of all values, 500, or of a channel, 1
	}{
		{"an offset of all of 10", 10, false, func(v float64) float64 { return v + 50 }, 0.4},
		{"an offset of all of 6", 6, false, func(v float64) float64 { return v + 50 }, 0.4},
		{"an offset of both of 2", 2, false, func(v float64) float64 { return v + 50 }, 0.4 / 3},
		{"an offset of both of 2 units", 2, true, func(v float64) float64 { return v + 0.6 }, 4 * (0.1 - 0.01)},
		{"a factor of all of 2", 2, false, func(v float64) float64 { return 500 + 1.1*(v-500) }, 0.4},
	} {
		if got := compare(c.width, c.channels, c.engine); math.Abs(got-c.want) > 0.03*c.want {
			t.Errorf("%s: systematic errors of %v spreads, want %v", c.name, got, c.want)
		}
	}
}

// Errors that all rows of a case share, as those of the words of a sentence do, are as many as there
// are cases: in few cases they are chance, and in many of them an offset of the same size shows.
func TestSystematicCountsCases(t *testing.T) {
	t.Parallel()
	compare := func(cases int, offset float64, seed uint64) float64 {
		noise := rand.New(rand.NewPCG(seed, 7))
		c := tensor.NewComparison(tensor.Options{Systematic: true})
		for index := range cases {
			shared := offset + 0.2*noise.NormFloat64()
			var want, got []float64
			for range 24 {
				value := noise.NormFloat64()
				want, got = append(want, value), append(got, value+shared)
			}
			if err := c.Add(index, rowsOf(t, want), rowsOf(t, got)); err != nil {
				t.Fatal(err)
			}
		}
		return c.Result().Systematic
	}
	for seed := range uint64(50) {
		if got := compare(8, 0, seed); got > 0.05 {
			t.Errorf("errors of 0.2 shared within 8 cases, seed %d: systematic errors of %v spreads, want under 0.05", seed, got)
		}
		if got := compare(400, 0.2, seed); got < 0.14 {
			t.Errorf("an offset of 0.2 in 400 cases, seed %d: systematic errors of %v spreads, want at least 0.14", seed, got)
		}
	}
	for _, cases := range []int{1, 2} {
		if got := compare(cases, 1, 1); got < 0.5 {
			t.Errorf("an offset of 1 in %d cases of 4 rows: systematic errors of %v spreads, want at least 0.5: a fault does not hide in few cases",
				cases, got)
		}
	}
}

// rowsOf returns the values as one case of six channels.
func rowsOf(t *testing.T, values []float64) tensor.Tensor {
	t.Helper()
	made, err := tensor.New(values, int64(len(values)/6), 6)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Where the last axis differs between cases, a curve through all values is what counts, and there are no
// spreads of channels. A case without elements changes nothing.
func TestSystematicOfAnOpenLastAxis(t *testing.T) {
	t.Parallel()
	compare := func(channels bool, widthOf func(int) int, offset, noise float64) tensor.Result {
		random := rand.New(rand.NewPCG(6, 7))
		c := tensor.NewComparison(tensor.Options{Systematic: true, Channels: channels})
		for n := range 400 {
			want, got := make([]float64, widthOf(n)), make([]float64, widthOf(n))
			for i := range want {
				want[i] = 7 + random.NormFloat64()
				got[i] = want[i] + offset + noise*random.NormFloat64()
			}
			if err := c.Add(n, rowOf(t, want), rowOf(t, got)); err != nil {
				t.Fatal(err)
			}
		}
		return c.Result()
	}
	of := func(width, other int) func(int) int {
		return func(n int) int { return map[bool]int{true: other, false: width}[n == 7] }
	}
	mixed := func(n int) int { return 1 + n%40 }
	for name, c := range map[string]struct {
		width         func(int) int
		offset, noise float64
		low, high     float64
		none          bool // of the channels
	}{
		"one width":                 {of(8, 8), 0.2, 0.01, 0.74, 0.8, false},
		"one case is wider":         {of(8, 9), 0.2, 0.01, 0.74, 0.8, true},
		"one case is narrower":      {of(8, 3), 0.2, 0.01, 0.74, 0.8, true},
		"all widths":                {mixed, 0.2, 0.01, 0.74, 0.8, true},
		"all widths, without fault": {mixed, 0, 0.3, 0, 0.013, true},
		"a case without elements":   {of(8, 0), 0.2, 0.01, 0.74, 0.8, false},
		"too wide":                  {of(tensor.MaxChannels+1, 0), 0.2, 0.01, 0.74, 0.8, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			width := c.width
			if name == "too wide" {
				width = func(n int) int { return map[bool]int{true: c.width(n)}[n < 3] }
			}
			got := compare(false, width, c.offset, c.noise)
			if !(got.Systematic >= c.low && got.Systematic <= c.high) || got.NoChannels {
				t.Errorf("systematic errors of %v spreads, no channels: %t; want %v to %v, and false where none were asked for",
					got.Systematic, got.NoChannels, c.low, c.high)
			}
			if got := compare(true, width, c.offset, c.noise); got.NoChannels != c.none ||
				(len(got.Spreads) == 1) != c.none || got.Systematic == 0 && c.low > 0 {
				t.Errorf("per channel: none %t, %d spreads, systematic errors of %v; want none %t", got.NoChannels, len(got.Spreads), got.Systematic, c.none)
			}
		})
	}
}
