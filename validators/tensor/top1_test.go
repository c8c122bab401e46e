package tensor_test

import (
	"math"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

func TestArgmax(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row  []float64
		want int
	}{
		{nil, -1}, {[]float64{5}, 0}, {[]float64{1, 3, 3, 2}, 1}, {[]float64{-inf, -inf}, 0}, {[]float64{-inf, -1e300}, 1},
		{[]float64{1, inf, inf}, 1}, {[]float64{nan}, -1}, {[]float64{nan, 1}, -1}, {[]float64{1, nan}, -1},
	} {
		if got := tensor.Argmax(c.row); got != c.want {
			t.Errorf("Argmax(%v) = %d, want %d", c.row, got, c.want)
		}
	}
}

func TestArgmaxRows(t *testing.T) {
	t.Parallel()
	values := make([]float32, 2*1300)
	values[1100], values[1300+3] = 1, 1
	if got := tensortest.Must(tensor.ArgmaxRows(tensortest.Must(tensor.New(values, 2, 1300)))); !slices.Equal(got, []int64{1100, 3}) {
		t.Errorf("long rows: %v", got)
	}
	if got := tensortest.Must(tensor.ArgmaxRows(tensortest.Must(tensor.New([]float32{}, 0, 3)))); len(got) != 0 {
		t.Errorf("no rows: %v", got)
	}
	_, err := tensor.ArgmaxRows(tensortest.Must(tensor.New([]float32{1})))
	tensortest.WantKind(t, err, tensor.ErrMismatch)
}

// TestTop1Agreement: a NaN on both sides agrees, on one side it does not.
func TestTop1Agreement(t *testing.T) {
	t.Parallel()
	ref := tensortest.Must(tensor.New([]float64{0, 1, 0, 1, nan, 0, 1, 1}, 4, 2))
	eng := tensortest.Must(tensor.New([]float64{0, 2, 0, nan, nan, 0, 0, 1}, 4, 2))
	if got := compare(tensor.Options{}, ref, eng); got.Top1Rows != 4 || got.Top1 != 0.5 {
		t.Errorf("%v of %d rows, want 0.5 of 4", got.Top1, got.Top1Rows)
	}
}

// Rows of padding are none that agree, whatever the padding is: a case with one real row has only that.
func TestRowsThatSayNothing(t *testing.T) {
	t.Parallel()
	one := func(others float64) func(int, int) float64 {
		return func(_, at int) float64 {
			if at == 2 {
				return 3
			}
			return others
		}
	}
	for name, c := range map[string]struct {
		width   int
		padding func(side, at int) float64
		silent  bool
	}{
		"zeros":                      {5, func(int, int) float64 { return 0 }, true},
		"infinities":                 {5, func(int, int) float64 { return -inf }, true},
		"fill values":                {5, func(int, int) float64 { return -1e4 }, true},
		"fill values added to":       {5, func(side, at int) float64 { return -1e4 - float64((at+side)%3) }, true},
		"a value of each side's own": {5, func(side, _ int) float64 { return float64(side) }, true},
		"longer than a piece":        {1300, func(int, int) float64 { return 0 }, true},
		"others than the first":      {1300, func(_, at int) float64 { return -float64(at / 1299) }, false},
		"of the engine alone":        {5, func(side, at int) float64 { return -float64(side * at) }, true},
		"of the reference alone":     {5, func(side, at int) float64 { return -float64((1 - side) * at) }, false},
		"one that is allowed":        {5, one(-1e4), true},
		"one beside infinities":      {5, one(-inf), true},
		"one beside others that an engine changes": {5, func(side, at int) float64 {
			return one(-1e4)(side, at) * float64(1+side)
		}, true},
		"two that are allowed": {5, func(_, at int) float64 {
			if at < 2 {
				return 3 - float64(at)
			}
			return -1e4
		}, false},
		"one that is allowed, late":      {1300, func(_, at int) float64 { return map[bool]float64{true: 3, false: -1e4}[at == 1299] }, true},
		"two that are allowed, one late": {1300, func(_, at int) float64 { return map[bool]float64{true: -float64(at), false: -1e4}[at%1299 == 0] }, false},
	} {
		compared := tensor.NewComparison(tensor.Options{Fill: 1e4})
		for n := range 3 {
			var sides [2]tensor.Tensor
			for side := range sides {
				values := make([]float64, 10*c.width)
				for i := range values {
					values[i] = c.padding(side, i%c.width)
				}
				if n == 0 { // the last row is real, and wrong
					values[len(values)-1-side] = 7
				}
				sides[side] = tensortest.Must(tensor.New(values, 1, 10, int64(c.width)))
			}
			if err := compared.Add(n, sides[0], sides[1]); err != nil {
				t.Fatal(err)
			}
		}
		cases, misses := 3, 0.1
		if c.silent {
			cases, misses = 1, 1
		}
		if r := compared.Result(); r.Top1Cases != cases || math.Abs(r.Top1Misses-misses) > 1e-12 || r.Top1Rows != 30 {
			t.Errorf("%s: misses %v in %d cases, %d rows; want %v in %d", name, r.Top1Misses, r.Top1Cases, r.Top1Rows, misses, cases)
		}
	}
}

// A prefix ends at the first row with another argmax, in each case anew.
func TestPrefix(t *testing.T) {
	t.Parallel()
	row := func(answers ...int) tensor.Tensor {
		values := make([]float64, 2*len(answers))
		for i, a := range answers {
			values[2*i+a] = 1
		}
		return tensortest.Must(tensor.New(values, int64(len(answers)), 2))
	}
	c := tensor.NewComparison(tensor.Options{})
	for i, eng := range []tensor.Tensor{row(0, 1, 1, 0), row(0, 1, 0, 0), row(1, 1, 1, 0)} {
		if err := c.Add(i, row(0, 1, 1, 0), eng); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := c.Result().Prefix, (1+0.5+0)/3; math.Abs(got-want) > 1e-15 {
		t.Errorf("the prefix is %v of the rows, want %v", got, want)
	}
	if got := compare(tensor.Options{}, tensortest.Must(tensor.New([]float64{1}, 1, 1)), tensortest.Must(tensor.New([]float64{1}, 1, 1))); !math.IsNaN(got.Prefix) {
		t.Errorf("the prefix of a single number is %v, want NaN", got.Prefix)
	}
}

func TestTop1(t *testing.T) {
	t.Parallel()
	logits := tensortest.Must(tensor.New([]float32{0, 1, 2, 5, 1, 1, 0, float32(nan), 0}, 3, 3))
	for _, labels := range []tensor.Tensor{
		tensortest.Must(tensor.New([]int64{2, 1, 1}, 3)), tensortest.Must(tensor.New([]uint8{2, 1, 1}, 3, 1)), tensortest.Must(tensor.New([]uint64{2, 1, 1}, 3)),
	} {
		correct, total, err := tensor.Top1(logits, labels)
		if correct != 1 || total != 3 || err != nil {
			t.Errorf("%s %v: %d of %d, %v", labels.DType, labels.Shape, correct, total, err)
		}
	}
	for name, labels := range map[string]tensor.Tensor{
		"shape":     tensortest.Must(tensor.New([]int64{2, 1}, 2)),
		"floats":    tensortest.Must(tensor.New([]float32{2, 1, 1}, 3)),
		"negative":  tensortest.Must(tensor.New([]int64{2, -1, 1}, 3)),
		"too large": tensortest.Must(tensor.New([]int64{2, 3, 1}, 3)),
		"2^64-1":    tensortest.Must(tensor.New([]uint64{2, 1<<64 - 1, 1}, 3)),
		"2^63-1":    tensortest.Must(tensor.New([]int64{2, 1<<63 - 1, 1}, 3)),
	} {
		_, _, err := tensor.Top1(logits, labels)
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		tensortest.WantKind(t, err, tensor.ErrMismatch)
	}
	if _, _, err := tensor.Top1(tensortest.Must(tensor.New([]float32{}, 3, 0)), tensortest.Must(tensor.New([]int64{2, 1, 1}, 3))); err == nil {
		t.Error("no classes: accepted")
	}
}
