package tensor_test

import (
	"math"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

// OtherAnswers is what a comparison with an engine that always gives the most frequent answer misses.
func TestOtherAnswers(t *testing.T) {
	t.Parallel()
	ints := func(values ...int64) tensor.Tensor {
		x, err := tensor.New(values, 1, int64(len(values)))
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for name, c := range map[string]struct {
		cases [][]int64
		want  float64
	}{
		"one answer":             {[][]int64{{7, 7}, {7}}, 0},
		"a third of one case":    {[][]int64{{0, 0, 3}, {0}}, 1. / 3},
		"by cases, not elements": {[][]int64{{1, 1, 1, 1, 1, 1}, {2}, {2}}, 1},
		"negative and large":     {[][]int64{{-5}, {-5}, {1 << 40}, {256}}, 2},
		"an empty case":          {[][]int64{{}, {3}, {4}, {4}}, 1},
	} {
		compared := tensor.NewComparison(tensor.Options{})
		for n, values := range c.cases {
			if err := compared.Add(n, ints(values...), ints(values...)); err != nil {
				t.Fatal(err)
			}
		}
		if got := compared.Result(); math.Abs(got.OtherAnswers-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got.OtherAnswers, c.want)
		}
	}
	for places, want := range map[bool]float64{true: 198.801, false: 199.8} { // with an answer of each place, one of 200 is right
		many := tensor.NewComparison(tensor.Options{})
		for n := range 200 {
			values := make([]int64, 1000) // more than are counted; the most frequent one comes first
			for i := range values {
				values[i] = int64(1000 + 1000*n + i)
			}
			values[0] = 999
			x := ints(values...)
			if !places && n == 0 {
				x.Shape = []int64{1, 2, 500}
			}
			if err := many.Add(n, x, x); err != nil {
				t.Fatal(err)
			}
		}
		if got := many.Result().OtherAnswers; math.Abs(got-want) > 1e-6 {
			t.Errorf("of many answers %v, want %v", got, want)
		}
	}
	floats := tensor.NewComparison(tensor.Options{})
	if err := floats.Add(0, rowOf(t, []float64{1, 2}), rowOf(t, []float64{1, 2})); err != nil || floats.Result().OtherAnswers != 0 {
		t.Errorf("floats: %v (%v), want 0", floats.Result().OtherAnswers, err)
	}
}

// A value is frequent whenever it comes, however many others came before.
func TestOtherAnswersComeLate(t *testing.T) {
	t.Parallel()
	for _, before := range []int{1 << 16, 5 << 16} {
		compared := tensor.NewComparison(tensor.Options{})
		values := make([]int64, 1<<19)
		for i := range values {
			if values[i] = 999; i < before {
				values[i] = int64(1000 + i)
			}
		}
		x := tensortest.Must(tensor.New(values, 1, 1<<19))
		if err := compared.Add(0, x, x); err != nil {
			t.Fatal(err)
		}
		if got, want := compared.Result().OtherAnswers, float64(before)/(1<<19); math.Abs(got-want) > 1e-5 {
			t.Errorf("after %d others: %v, want %v", before, got, want)
		}
	}
}

// Where all cases have one shape, an engine that always gives the same answer at each place is no better than a constant.
func TestOtherAnswersAtEachPlace(t *testing.T) {
	t.Parallel()
	labels := func(n int) []int64 { return []int64{1, 0, min(int64(n%33), 1)} } // the last is another in one case of 33
	rows := func(n int, of func(int) []int64) (all [][]int64) {
		for i := range n {
			all = append(all, of(i))
		}
		return all
	}
	for name, c := range map[string]struct {
		cases [][]int64
		shape func(n int) []int64 // nil: of one row
		want  float64
	}{
		"labels":                        {rows(330, labels), nil, 10. / 3},
		"of twenty cases":               {rows(20, labels), nil, 1. / 3},
		"of fewer":                      {rows(19, labels), nil, 19 - 37./3},
		"one answer everywhere":         {rows(330, func(n int) []int64 { return []int64{1, 1, min(int64(n%33), 1)} }), nil, 10. / 3},
		"tokens between fixed ones":     {rows(300, func(n int) []int64 { return []int64{101, int64(1000 + n%3), 102} }), nil, 200. / 3},
		"more answers than are counted": {rows(1000, func(n int) []int64 { return []int64{7, int64(1000 + min(n, 400))} }), nil, 200},
		"another shape in one case":     {rows(330, labels), func(n int) []int64 { return [][]int64{{1, 3}, {3, 1}}[n/329] }, 330 - (330+320)/3.},
		"an empty case":                 {append(rows(330, labels), nil), nil, 10. / 3},
		"more places than are counted": {rows(20, func(n int) []int64 {
			values := make([]int64, 1<<14+1)
			values[0] = 1
			return values
		}), nil, 20. / (1<<14 + 1)},
		"as many places": {rows(20, func(n int) []int64 {
			values := make([]int64, 1<<14)
			values[0] = 1
			return values
		}), nil, 0},
	} {
		compared := tensor.NewComparison(tensor.Options{})
		for n, values := range c.cases {
			shape := []int64{1, int64(len(values))}
			if c.shape != nil {
				shape = c.shape(n)
			}
			x := tensortest.Must(tensor.New(values, shape...))
			if err := compared.Add(n, x, x); err != nil {
				t.Fatal(err)
			}
			if err := compared.AddCopy(n, x, x); err != nil { // which counts for nothing
				t.Fatal(err)
			}
		}
		if got := compared.Result().OtherAnswers; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A mask with a few other answers in each case has them in all cases, however small their share is.
func TestOtherCases(t *testing.T) {
	t.Parallel()
	c := tensor.NewComparison(tensor.Options{})
	for n := range 40 {
		mask := make([]int64, 1000)
		if n%4 == 0 {
			mask[n] = 3
		}
		of := tensortest.Must(tensor.New(mask, 1, 1000))
		if err := c.Add(n, of, of); err != nil {
			t.Fatal(err)
		}
	}
	if r := c.Result(); r.OtherCases != 10 || math.Abs(r.OtherAnswers-0.01) > 1e-12 {
		t.Errorf("%d cases have other answers, %v in all; want 10 and 0.01", r.OtherCases, r.OtherAnswers)
	}
}

// NaN, infinities and fill values that both sides have are no answers, and rows that have no largest value on either side,
// or no value above another, are none that agree.
func TestCasesThatSayNothing(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(-1)
	for name, c := range map[string]struct {
		reference, engine []float64
		full, ranked      int
		equal, top1       float64 // misses
	}{
		"all NaN":                    {[]float64{nan, nan}, []float64{nan, nan}, 0, 0, 0, 0},
		"infinities":                 {[]float64{inf, inf}, []float64{inf, inf}, 0, 0, 0, 0},
		"other infinities":           {[]float64{inf, inf}, []float64{-inf, inf}, 1, 0, 0.5, 0},
		"an infinity and a number":   {[]float64{inf, 1}, []float64{3, 1}, 1, 1, 0.5, 1},
		"fill values":                {[]float64{-1e9, -1e9}, []float64{-1e9, -1e9}, 0, 0, 0, 0},
		"fill values nearly":         {[]float64{-1.001e9, -1e9}, []float64{-1e9, -1.001e9}, 0, 0, 0, 0},
		"fill values and one number": {[]float64{-1e9, 1}, []float64{-1e9, 1}, 1, 0, 0, 0},
		"fill values and two":        {[]float64{-1e9, 1, 2}, []float64{-1e9, 1, 2}, 1, 1, 0, 0},
		"fill values of one side":    {[]float64{-1e9, -1e9}, []float64{-1e9, -1e8}, 1, 1, 0.5, 1},
		"zeros":                      {[]float64{0, 0}, []float64{0, 0}, 1, 0, 0, 0},
		"zeros in the engine alone":  {[]float64{0, 1}, []float64{0, 0}, 1, 1, 0.5, 1},
		"NaN in the reference alone": {[]float64{nan, nan}, []float64{1, 2}, 1, 1, 1, 1},
		"NaN in the engine alone":    {[]float64{1, 2}, []float64{nan, nan}, 1, 1, 1, 1},
		"a NaN in the row":           {[]float64{nan, 2}, []float64{nan, 2}, 1, 0, 0, 0},
		"an answer":                  {[]float64{1, 2}, []float64{1, 2}, 1, 1, 0, 0},
	} {
		compared := tensor.NewComparison(tensor.Options{Fill: 1e9})
		if err := compared.Add(0, rowOf(t, c.reference), rowOf(t, c.engine)); err != nil {
			t.Fatal(err)
		}
		r := compared.Result()
		if r.FullCases != c.full || r.Top1Cases != c.ranked || r.EqualMisses != c.equal || r.Top1Misses != c.top1 || r.Cases != 1 {
			t.Errorf("%s: %d full, %d ranked, misses %v and %v; want %d, %d, %v and %v", name,
				r.FullCases, r.Top1Cases, r.EqualMisses, r.Top1Misses, c.full, c.ranked, c.equal, c.top1)
		}
		each := compared.Each()[0]
		if math.IsNaN(each.Equal) != (c.full == 0) || math.IsNaN(each.Top1) != (c.ranked == 0) {
			t.Errorf("%s: figures of the case %+v", name, each)
		}
	}
}
