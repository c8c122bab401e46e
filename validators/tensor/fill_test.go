package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

func magnitudes(t *testing.T, values ...float64) *tensor.Magnitudes {
	t.Helper()
	m := new(tensor.Magnitudes)
	for _, v := range values { // each a tensor of its own
		m.Add(rowOf(t, []float64{v}))
	}
	return m
}

// What is a fill value in half of the cases is one, whatever large values another case has.
func TestFillBesideAnOutlier(t *testing.T) {
	t.Parallel()
	const filled = 9999.0
	for name, c := range map[string]struct {
		width, cases, with int // of the cases: with fill values
		want               float64
	}{
		"in all":             {8, 20, 20, filled},
		"in half":            {8, 20, 10, filled},
		"in less than half":  {8, 20, 9, math.Inf(1)},
		"too few in a case":  {7, 20, 20, math.Inf(1)},
		"longer than a part": {1300, 20, 20, filled},
	} {
		m := new(tensor.Magnitudes)
		for n := range c.cases {
			row := make([]float64, c.width)
			for i := range row {
				row[i] = float64(1 + i%7)
			}
			if n < c.with {
				row[0], row[c.width-1] = -filled, -filled
			}
			if n == c.cases-1 {
				row[2] = 5000 // far out, and no fill value
			}
			m.Add(tensortest.Must(tensor.New(row, 1, int64(c.width))))
		}
		for _, by := range []tensor.Fills{tensor.FillsEqual, tensor.FillsNear} {
			if got := m.Fill(by); got != c.want {
				t.Errorf("%s, by %v: %v, want %v", name, by, got, c.want)
			}
		}
		if got := m.Fill(tensor.FillsNone); got != tensor.NoFill {
			t.Errorf("%s: %v where none are looked for", name, got)
		}
	}
}

// Fill values are told from others by how far out they are, and by being equal or, of scores, nearly so.
func TestFill(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(1), math.NaN()
	for name, c := range map[string]struct {
		values      []float64
		equal, near float64
	}{
		"none at all":           {nil, inf, inf},
		"nothing far out":       {[]float64{1, -2, 3, 30}, inf, inf},
		"a constant":            {[]float64{-1e4, 3, -1e4, 2}, 1e4, 1e4},
		"either sign":           {[]float64{-1e4, 3, 1e4, 2}, 1e4, 1e4},
		"once":                  {[]float64{-1e4, 3, 2}, inf, inf},
		"ten times":             {[]float64{-100, 10, -100}, 100, 100},
		"less than ten times":   {[]float64{-99.9, 10, -99.9}, inf, inf},
		"probabilities":         {[]float64{1, 1, 0.01, 0}, inf, inf},
		"just above 1":          {[]float64{1.001, 1.001, 0.01}, 1.001, 1.001},
		"added to scores":       {[]float64{-10001, 3, -9997, 2}, inf, 9997},
		"a tenth apart":         {[]float64{-1100, 3, -1000, 2}, inf, 1000},
		"more than a tenth":     {[]float64{-1100.1, 3, -1000, 2}, inf, inf},
		"near, below 1000":      {[]float64{-1000, 3, -999, 2}, inf, inf},
		"near, 100 times":       {[]float64{-2001, 20, -2000}, inf, 2000},
		"near, less":            {[]float64{-2001, 20.01, -2000}, inf, inf},
		"two of them":           {[]float64{-1e9, -1e9, -1e4, -1e4, 5}, 1e4, 1e4},
		"one fill, one outlier": {[]float64{-1e9, -1e9, 1e4, 5}, 1e9, 1e9},
		"an outlier beyond":     {[]float64{-1e12, -1e9, -1e9, 5}, inf, inf},
		"beside zeros alone":    {[]float64{-1e9, -1e9, 0, 0}, inf, inf},
		"no finite others":      {[]float64{-1e9, -1e9, nan, inf}, inf, inf},
		"the lowest float32":    {[]float64{-math.MaxFloat32, 5, -math.MaxFloat32, -inf, nan}, math.MaxFloat32, math.MaxFloat32},
		"the smallest number":   {[]float64{5, 5, 0x1p-1074}, 5, 5},
	} {
		m := magnitudes(t, c.values...)
		if equal, near := m.Fill(tensor.FillsEqual), m.Fill(tensor.FillsNear); equal != c.equal || near != c.near {
			t.Errorf("%s: %g, and of those that are nearly equal %g; want %g and %g", name, equal, near, c.equal, c.near)
		}
		if fill := m.Fill(tensor.FillsNone); fill != inf {
			t.Errorf("%s: %g without a rule", name, fill)
		}
	}
	var m tensor.Magnitudes
	integers, err := tensor.New([]int64{-10000, -10000, 3}, 1, 3)
	if m.Add(integers); err != nil || m.Fill(tensor.FillsEqual) != inf {
		t.Errorf("integers have the fill value %g (%v)", m.Fill(tensor.FillsEqual), err)
	}
}

// What is compared beside fill values has the figures that it has alone, and a fill value that the engine does not have
// is an error among those.
func TestFillValuesHideNothing(t *testing.T) {
	t.Parallel()
	const fill = -1e4
	random := rand.New(rand.NewPCG(5, 5))
	options := tensor.Options{Systematic: true}
	alone, beside, wrong := tensor.NewComparison(options), tensor.NewComparison(options), tensor.NewComparison(options)
	options.Fill = 9e3
	filled, broken := tensor.NewComparison(options), tensor.NewComparison(options)
	for n := range 60 {
		var want, got, wantAll, gotAll []float64
		for range 10 {
			v := random.NormFloat64()
			want, got = append(want, v), append(got, v+0.5*random.NormFloat64())
			wantAll, gotAll = append(wantAll, fill-v, v), append(gotAll, fill*0.995, got[len(got)-1])
		}
		off := append([]float64{fill * 0.97}, gotAll[1:]...)
		for c, sides := range map[*tensor.Comparison][2][]float64{alone: {want, got}, beside: {wantAll, gotAll}, filled: {wantAll, gotAll},
			wrong: {wantAll, off}, broken: {wantAll, off}} {
			if err := c.Add(n, rowOf(t, sides[0]), rowOf(t, sides[1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, got := alone.Result(), filled.Result()
	for name, pair := range map[string][2]float64{"SpreadSNR": {want.SpreadSNR, got.SpreadSNR}, "MaxError": {want.MaxError, got.MaxError},
		"CaseError": {want.CaseError, got.CaseError}, "CosineMin": {want.CosineMin, got.CosineMin}, "Spread": {want.Spread, got.Spread},
		"MaxAbs": {want.MaxAbs, got.MaxAbs}} {
		if math.Abs(pair[0]-pair[1]) > 1e-9*math.Abs(pair[0]) {
			t.Errorf("%s is %v alone and %v beside fill values", name, pair[0], pair[1])
		}
	}
	if got.Fill != options.Fill || want.Fill != 0 {
		t.Errorf("fill %g and %g, want %g and 0", got.Fill, want.Fill, options.Fill)
	}
	if hidden := beside.Result(); hidden.SpreadSNR < 40 {
		t.Errorf("without the rule %.1f dB: these cases show nothing", hidden.SpreadSNR)
	}
	if r := broken.Result(); !(r.SpreadSNR < 0) || r.Spread > 1.5 {
		t.Errorf("fill values that are 3 %% off give %.1f dB relative to a spread of %g", r.SpreadSNR, r.Spread)
	}
	if r := wrong.Result(); r.SpreadSNR < 20 {
		t.Errorf("without the rule %.1f dB", r.SpreadSNR)
	}
}

// Beside fill values an infinity of the reference is still one: no number, and no other infinity, is equal to it.
func TestFillValuesKeepInfinities(t *testing.T) {
	t.Parallel()
	for _, fill := range []float64{0, 1e4, tensor.NoFill} {
		for engine, failed := range map[float64]int64{-inf: 0, 5: 1, inf: 1, -1e4: 1, nan: 1} {
			c := tensor.NewComparison(tensor.Options{Fill: fill, RTol: 1})
			if err := c.Add(0, rowOf(t, []float64{-inf, -1e4, 1}), rowOf(t, []float64{engine, -1e4, 1})); err != nil {
				t.Fatal(err)
			}
			if got := c.Result(); got.Failed != failed || math.IsInf(got.MaxAbs, 1) != (failed > 0) {
				t.Errorf("fill %g, engine %g: %d failed, largest error %g; want %d", fill, engine, got.Failed, got.MaxAbs, failed)
			}
		}
	}
}
