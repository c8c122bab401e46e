package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// The errors of cases that a comparison gives one by one are those of which it says the worst.
func TestErrorsOfCasesBesideHugeValues(t *testing.T) {
	t.Parallel()
	for _, huge := range []int{0, 1, 4, 5, 6} {
		c := tensor.NewComparison(tensor.Options{})
		for n := range 100 {
			want := []float64{float64(n % 7), float64(n % 5), 3}
			if n < huge {
				want[1] = 1e7
			}
			if err := c.Add(n, rowOf(t, want), rowOf(t, []float64{want[0] + 0.01*float64(n), want[1], 3})); err != nil {
				t.Fatal(err)
			}
		}
		worst, at := 0.0, -1
		for n, of := range c.Each() {
			if of.Error > worst {
				worst, at = of.Error, n
			}
		}
		if got := c.Result(); got.CaseError != worst || got.CaseErrorCase != at || (worst > 0.1) != (huge < 6) {
			t.Errorf("%d huge cases of 100: error %v in case %d, and one by one %v in case %d; want the same, and above 0.1 for up to five",
				huge, got.CaseError, got.CaseErrorCase, worst, at)
		}
	}
}

// A single huge value of the reference does not make errors of the other cases look small, wherever it is.
// Values that are merely unequal are held to the spread of all.
func TestOneHugeValueExcusesNoErrors(t *testing.T) {
	t.Parallel()
	compare := func(cases int, channels bool, huge func(n, channel int) float64, engine func(v float64, n int) float64) tensor.Result {
		random := rand.New(rand.NewPCG(4, 4))
		c := tensor.NewComparison(tensor.Options{Channels: channels})
		for n := range cases {
			want, got := make([]float64, 3), make([]float64, 3)
			for i := range want {
				want[i] = 50 + random.NormFloat64()
				if far := huge(n, i); far != 0 {
					want[i] = far
				}
				got[i] = engine(want[i], n)
			}
			if err := c.Add(n, rowOf(t, want), rowOf(t, got)); err != nil {
				t.Fatal(err)
			}
		}
		return c.Result()
	}
	at := func(which int, value float64) func(int, int) float64 {
		return func(n, channel int) float64 {
			if n == which && channel == 1 {
				return value
			}
			return 0
		}
	}
	half := func(v float64, n int) float64 {
		if v > 40 && v < 60 {
			return v + 0.5*float64(1-2*(n%2)) // half a spread, up and down
		}
		return v
	}
	for name, c := range map[string]struct {
		cases     int
		huge      func(int, int) float64
		low, high float64 // SNR in dB
	}{
		"none":                  {400, at(-1, 0), 5, 7},
		"huge":                  {400, at(200, 1e20), 5, 7},
		"the first value":       {400, func(n, i int) float64 { return map[bool]float64{true: 1e6}[n == 0 && i == 0] }, 5, 7},
		"large":                 {400, at(3, 1e4), 5, 7},
		"two of 400":            {400, func(n, i int) float64 { return map[bool]float64{true: -1e9}[n%200 == 7 && i == 1] }, 5, 7},
		"two huge of 100":       {100, func(n, i int) float64 { return map[bool]float64{true: 1e6}[n < 2 && i == 1] }, 5, 7},
		"five of 100":           {100, func(n, _ int) float64 { return map[bool]float64{true: 1e6}[n%20 == 3] }, 5, 7},
		"six of 100":            {100, func(n, _ int) float64 { return map[bool]float64{true: 1e6}[n%20 == 3 || n == 50] }, 100, 200},
		"ever smaller":          {100, func(n, i int) float64 { return map[bool]float64{true: 1e9 / math.Pow(10, float64(n))}[n < 5 && i == 1] }, 5, 7},
		"two of 39":             {39, func(n, _ int) float64 { return map[bool]float64{true: 1e9}[n < 2] }, 100, 300},
		"one of 20":             {20, at(4, 1e9), 4, 8},
		"one of 19":             {19, at(4, 1e9), 100, 300},
		"a tenth are far":       {400, func(n, _ int) float64 { return map[bool]float64{true: 5000}[n%10 == 3] }, 60, 80},
		"less than twice of it": {400, at(3, 53), 5, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, channels := range []bool{false, true} {
				got := compare(c.cases, channels, c.huge, half)
				if channels && c.cases == 19 { // the other channels are as ever
					continue
				}
				if !(got.SpreadSNR >= c.low && got.SpreadSNR <= c.high) {
					t.Errorf("per channel %t: SNR of %v dB, want %v to %v", channels, got.SpreadSNR, c.low, c.high)
				}
			}
		})
	}
	got := compare(400, false, at(200, 1e20), func(v float64, n int) float64 { return v + map[bool]float64{true: 3}[n == 17] })
	if got.CaseErrorCase != 17 || got.CaseError < 2 || got.MaxError < 2 {
		t.Errorf("a case that is 3 spreads off beside a huge value: error %v in case %d, largest %v; want about 3 in case 17",
			got.CaseError, got.CaseErrorCase, got.MaxError)
	}
	got = compare(400, false, at(200, 1e20), func(v float64, _ int) float64 { return v * (1 + 1e-7) })
	if got.MaxError > 1e-4 || math.IsInf(got.SpreadSNR, -1) || got.SpreadSNR < 80 {
		t.Errorf("an engine that is right to seven digits beside a huge value: error %v, %v dB; want under 1e-4 and at least 80 dB",
			got.MaxError, got.SpreadSNR)
	}
}

// A few channels with huge constant values do not make errors of the other channels look small. Channels that are merely unequal
// are held to the spread of all.
func TestHugeChannelsExcuseNoErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		channels, huge int
		of             float64
		left           int
	}{
		"one of 40":           {40, 1, 3000, 1},
		"two of 40":           {40, 2, 3000, 2},
		"three of 40":         {40, 3, 3000, 0},
		"one of 19":           {19, 1, 3000, 0},
		"one of 40, not huge": {40, 1, 5, 0},
	} {
		random := rand.New(rand.NewPCG(6, 6))
		compared := tensor.NewComparison(tensor.Options{Systematic: true})
		for n := range 50 {
			want, got := make([]float64, c.channels), make([]float64, c.channels)
			for i := range want {
				if want[i] = random.NormFloat64(); i < c.huge {
					want[i] += c.of
				}
				got[i] = want[i] + 0.5*random.NormFloat64()
			}
			if err := compared.Add(n, rowOf(t, want), rowOf(t, got)); err != nil {
				t.Fatal(err)
			}
		}
		r := compared.Result()
		if c.left == 0 {
			if r.Others != nil {
				t.Errorf("%s: left out %+v", name, r.Others)
			}
			continue
		}
		if r.Others == nil || r.Others.Without != c.left || math.Abs(r.SpreadSNR-6) > 0.5 || r.SpreadSNR != r.Others.SNR || r.MaxError != r.Others.MaxError {
			t.Errorf("%s: %.1f dB and %.2f, others %+v; want about 6 dB, without %d", name, r.SpreadSNR, r.MaxError, r.Others, c.left)
		}
	}
}
