package tensor_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

// spreadOf is the standard deviation by its definition, in two passes.
func spreadOf(values []float64) float64 {
	var mean, sum float64
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sum += (v - mean) * (v - mean) / float64(len(values))
	}
	return math.Sqrt(sum)
}

// The figures are what their definitions say, also where the values are far from 0.
func TestSpreadAsDefined(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, offset := range []float64{0, 300, -1e6} {
		const cases, width = 50, 3
		scale := [width]float64{1, 20, 0.05}
		whole, channels := tensor.NewComparison(tensor.Options{}), tensor.NewComparison(tensor.Options{Channels: true})
		var all, differences []float64
		columns, wrong := make([][]float64, width), make([][]float64, width)
		for n := range cases {
			reference, engine := make([]float64, width), make([]float64, width)
			for i := range reference {
				reference[i] = offset + scale[i]*random.NormFloat64()
				engine[i] = reference[i] + 0.01*scale[i]*random.NormFloat64()
				all, differences = append(all, reference[i]), append(differences, engine[i]-reference[i])
				columns[i], wrong[i] = append(columns[i], reference[i]), append(wrong[i], engine[i]-reference[i])
			}
			for _, c := range []*tensor.Comparison{whole, channels} {
				if err := c.Add(n, tensortest.Must(tensor.New(reference, 1, width)), tensortest.Must(tensor.New(engine, 1, width))); err != nil {
					t.Fatal(err)
				}
			}
		}
		closeTo := func(what string, got, want float64) {
			t.Helper()
			if math.Abs(got-want) > 1e-6*math.Abs(want) {
				t.Errorf("offset %g: %s is %v, want %v", offset, what, got, want)
			}
		}
		power := func(values []float64) (mean, largest float64) {
			for _, v := range values {
				mean += v * v / float64(len(values))
				largest = max(largest, math.Abs(v))
			}
			return mean, largest
		}
		got := whole.Result()
		noise, largest := power(differences)
		closeTo("Spread", got.Spread, spreadOf(all))
		closeTo("SpreadSNR", got.SpreadSNR, 10*math.Log10(spreadOf(all)*spreadOf(all)/noise))
		closeTo("MaxError", got.MaxError, largest/spreadOf(all))
		got = channels.Result()
		least, snr, worst := math.Inf(1), math.Inf(1), 0.0
		for i, column := range columns {
			var rms float64
			for _, v := range column {
				rms += v * v / cases
			}
			spread := max(spreadOf(column), 1e-4*math.Sqrt(rms))
			noise, largest := power(wrong[i])
			least, snr, worst = min(least, spread), min(snr, 10*math.Log10(spread*spread/noise)), max(worst, largest/spread)
		}
		closeTo("Spread of channels", got.Spread, least)
		closeTo("SpreadSNR of channels", got.SpreadSNR, snr)
		closeTo("MaxError of channels", got.MaxError, worst)
	}
}

// Each fault shows in the figure that is there for it.
func TestSpreadShowsFaults(t *testing.T) {
	t.Parallel()
	// A temperature in degrees and a rate, in 40 cases.
	reference := func(n int) []float64 { return []float64{300 + float64(n%7), 0.001 * float64(n%5)} }
	run := func(o tensor.Options, engine func(n int) []float64) tensor.Result {
		c := tensor.NewComparison(o)
		for n := range 40 {
			if err := c.Add(n, tensortest.Must(tensor.New(reference(n), 1, 2)), tensortest.Must(tensor.New(engine(n), 1, 2))); err != nil {
				t.Fatal(err)
			}
		}
		return c.Result()
	}
	frozen := run(tensor.Options{Channels: true}, func(n int) []float64 { return []float64{reference(n)[0], 0.002} })
	if frozen.SpreadSNR > 3 || frozen.MaxError < 1 {
		t.Errorf("a rate that does not change has %v dB and error %v, want about 0 dB and more than 1", frozen.SpreadSNR, frozen.MaxError)
	}
	constant := run(tensor.Options{Channels: true}, func(n int) []float64 { return []float64{303, reference(n)[1]} })
	if constant.SpreadSNR > 3 || constant.SNR < 30 {
		t.Errorf("a constant temperature has %v dB and %v dB by power, want about 0 and more than 30", constant.SpreadSNR, constant.SNR)
	}
	stale := run(tensor.Options{}, func(n int) []float64 {
		if n == 17 {
			return []float64{reference(n)[0] + 400, 0}
		}
		return reference(n)
	})
	if stale.CaseErrorCase != 17 || stale.CaseError < 1 {
		t.Errorf("one wrong case has error %v in case %d, want more than 1 in case 17", stale.CaseError, stale.CaseErrorCase)
	}
	equal := run(tensor.Options{Channels: true}, reference)
	if !math.IsInf(equal.SpreadSNR, 1) || equal.MaxError != 0 || equal.CaseError != 0 || equal.CaseErrorCase != -1 {
		t.Errorf("equal outputs: %+v, want no error", equal)
	}
	for name, value := range map[string]float64{"NaN": math.NaN(), "infinity": math.Inf(-1)} {
		broken := run(tensor.Options{Channels: true}, func(n int) []float64 { return []float64{value, reference(n)[1]} })
		if !math.IsInf(broken.SpreadSNR, -1) || !math.IsInf(broken.MaxError, 1) || !math.IsInf(broken.CaseError, 1) {
			t.Errorf("%s: %+v, want infinite errors", name, broken)
		}
	}
}

// Where the reference is constant, its size stands for its spread; where it is 0, any error is infinite.
func TestSpreadOfAConstant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ reference, engine, want float64 }{{4, 5, 0.25}, {0, 0, 0}, {0, 1e-9, math.Inf(1)}} {
		for _, channels := range []bool{false, true} {
			got := compare(tensor.Options{Channels: channels}, vector(c.reference), vector(c.engine))
			if got.MaxError != c.want || got.CaseError != c.want {
				t.Errorf("%v for %v, channels %t: errors %v and %v, want %v", c.engine, c.reference, channels, got.MaxError, got.CaseError, c.want)
			}
		}
	}
}

// Some of the cases are held to the spread of all: their own can be far below it.
func TestSpreadOfSomeCases(t *testing.T) {
	t.Parallel()
	all := compare(tensor.Options{Channels: true}, vector(0, 100), vector(0, 100), vector(10, 300), vector(10, 300))
	if len(all.Spreads) != 2 || all.Spreads[0] != 5 || all.Spreads[1] != 100 {
		t.Fatalf("spreads %v, want 5 and 100", all.Spreads)
	}
	for name, c := range map[string]struct {
		options tensor.Options
		want    float64
	}{
		"their own":           {tensor.Options{Channels: true}, 1},
		"of all":              {tensor.Options{Channels: true, Spreads: all.Spreads}, 0.02},
		"of other channels":   {tensor.Options{Channels: true, Spreads: []float64{9, 9, 9}}, 1},
		"of the whole":        {tensor.Options{Spreads: []float64{400}}, 0.005},
		"less than their own": {tensor.Options{Channels: true, Spreads: []float64{0.1, 0.1}}, 1},
	} {
		got := compare(c.options, vector(2, 100), vector(2, 100), vector(2, 104), vector(2, 102))
		if got.MaxError != c.want {
			t.Errorf("%s: largest error %v, want %v", name, got.MaxError, c.want)
		}
	}
}

// Cases are counted by their error relative to the spread, which is known only at the end. A case at
// the end of a decade is in the next.
func TestCaseErrorsInDecades(t *testing.T) {
	t.Parallel()
	base := []float64{1, -1, 1, -1} // spread 1
	var pairs []tensor.Tensor
	for _, by := range []float64{0, 1e-9, 1.0 / (1 << 20), 1.0 / (1 << 10), 0.5, 1, 7, math.NaN()} {
		off := slices.Clone(base)
		for i := range off {
			off[i] += by
		}
		pairs = append(pairs, vector(base...), vector(off...))
	}
	pairs = append(pairs, vector(), vector())
	got := compare(tensor.Options{}, pairs...).CaseErrors
	if want := [tensor.Decades]int{3, 0, 1, 0, 0, 1, 0, 0, 1, 3}; got != want {
		t.Errorf("got %v, want %v: cases by decades", got, want)
	}
	if got, want := compare(tensor.Options{}, vector(0, 0), vector(0, 1)).CaseErrors, [tensor.Decades]int{9: 1}; got != want {
		t.Errorf("got %v, want %v: an error where the reference has no spread", got, want)
	}
}

// A value that stands for infinity, a channel that does not change and a spread that overflows hide no error.
func TestSpreadHidesNothing(t *testing.T) {
	t.Parallel()
	lowest := -float64(math.MaxFloat32)
	for name, c := range map[string]struct {
		options           tensor.Options
		reference, engine []float64
		atLeast           float64 // of the largest error
	}{
		"beside the fill of a mask":      {tensor.Options{}, []float64{1, 2, 3, lowest}, []float64{1, 2, 9, lowest}, 5},
		"the fill of a mask first":       {tensor.Options{}, []float64{lowest, 1, 2, 3}, []float64{lowest, 1, 2, 9}, 5},
		"a constant beside large values": {tensor.Options{Channels: true}, []float64{1e6, 0.5}, []float64{1e6, 200}, 300},
		"a zero beside large values":     {tensor.Options{Channels: true}, []float64{1e6, 0}, []float64{1e6, 1e4}, 10},
		"squares that overflow":          {tensor.Options{}, []float64{1e200, -1e200}, []float64{1e200, 1e199}, math.Inf(1)},
	} {
		got := compare(c.options, tensortest.Must(tensor.New(c.reference, 1, int64(len(c.reference)))), tensortest.Must(tensor.New(c.engine, 1, int64(len(c.engine)))))
		if !(got.MaxError >= c.atLeast) {
			t.Errorf("%s: largest error %v, want %v or more", name, got.MaxError, c.atLeast)
		}
	}
}
