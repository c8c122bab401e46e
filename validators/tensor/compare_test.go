package tensor_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

var (
	inf = math.Inf(1)
	nan = math.NaN()
)

func vector(values ...float64) tensor.Tensor {
	return tensortest.Must(tensor.New(values, int64(len(values))))
}

func compare(options tensor.Options, pairs ...tensor.Tensor) tensor.Result {
	acc := tensor.NewComparison(options)
	for i := 0; i < len(pairs); i += 2 {
		if err := acc.Add(i/2, pairs[i], pairs[i+1]); err != nil {
			panic(err)
		}
	}
	return acc.Result()
}

func TestCompareByHand(t *testing.T) {
	t.Parallel()
	got := compare(tensor.Options{RTol: 0.1, ATol: 0.5},
		vector(3, 4), vector(3, 4), // equal
		vector(10, 0), vector(11.5, 0.5), // 1.5 <= 1.5, 0.5 <= 0.5: both on the edge
		vector(1, 2), vector(2, 1), // 1 > 0.6 at 0, 1 > 0.7 at 1; the other argmax
	)
	want := tensor.Result{
		Cases: 3, Elements: 6, Float: true, Failed: 2,
		MaxAbs: 1.5, MaxAbsCase: 1, MaxErrorCase: 1, MeanAbs: 4.0 / 6,
		MaxRel: 0.5 / tensor.RelFloor, MaxRelCase: 1,
		CosineMin: 0.8, CosineMinCase: 2,
		SNR:  10 * math.Log10(130/4.5),
		Top1: 2.0 / 3, Top1Rows: 3, Prefix: 2. / 3, Top1Cases: 3, FullCases: 3, Top1Misses: 1, EqualMisses: 2,
		Spread: math.Sqrt(130.0/6 - 400.0/36), SpreadSNR: 10 * math.Log10((130-400.0/6)/4.5),
		Spreads: []float64{got.Spread}, MaxError: 1.5 / math.Sqrt(130.0/6-400.0/36), CaseError: math.Sqrt(1.25 / (130.0/6 - 400.0/36)), CaseErrorCase: 1,
		CaseErrors: [tensor.Decades]int{0: 1, 8: 2}, CaseDegrees: 27.0 / 7, // of 0, 1.25 and 1
		Classes: []tensor.ClassCases{{Class: 0, Cases: 1}, {Class: 1, Cases: 2, Lost: 1}},
		Worst:   &tensor.Element{Case: 2, Index: []int64{0}, Reference: 1, Engine: 2, Excess: 0.4},
	}
	for _, f := range []*float64{&got.CosineMin, &got.SNR, &got.Worst.Excess, &want.SNR, &got.Spread, &want.Spread,
		&got.SpreadSNR, &want.SpreadSNR, &got.MaxError, &want.MaxError, &got.CaseError, &want.CaseError, &got.CaseDegrees, &want.CaseDegrees} {
		*f = math.Round(*f*1e12) / 1e12
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v %+v\nwant %+v %+v", got, got.Worst, want, want.Worst)
	}
}

func TestCompareEqual(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]tensor.Tensor{
		"numbers":    vector(1, -2, 3),
		"zeros":      vector(0, math.Copysign(0, -1)),
		"non-finite": vector(nan, inf, -inf, 1),
		"huge":       vector(1e300, -1e300),
		"tiny":       vector(1e-300, 5e-324),
		"empty":      tensortest.Must(tensor.New([]float64{}, 0, 5)),
	} {
		got := compare(tensor.Options{}, x, x)
		if got.Failed != 0 || got.MaxAbs != 0 || got.MeanAbs != 0 || got.MaxRel != 0 || got.MaxAbsCase != -1 || got.CosineMin != 1 ||
			got.SNR != inf || got.Worst != nil || got.NewNaN+got.NewInf != 0 || got.Top1Rows > 0 && got.Top1 != 1 ||
			got.Cases != 1 || int(got.Elements) != x.Len() {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := tensor.NewComparison(tensor.Options{}).Result(); got.CosineMin != 1 || got.CosineMinCase != -1 || !math.IsNaN(got.Top1) || got.SNR != inf {
		t.Errorf("no cases: %+v", got)
	}
}

// TestCompareNonFinite: whatever is not finite on one side only meets no limit.
func TestCompareNonFinite(t *testing.T) {
	t.Parallel()
	cases := []struct {
		reference, engine float64
		newNaN, newInf    int64
	}{
		{1, nan, 1, 0}, {inf, nan, 1, 0}, {1, inf, 0, 1}, {inf, -inf, 0, 1}, {nan, inf, 0, 1},
		{nan, 1, 0, 0}, {inf, 1, 0, 0}, {math.MaxFloat64, -math.MaxFloat64, 0, 0},
	}
	for _, c := range cases {
		got := compare(tensor.Options{RTol: 1e300, ATol: 1e300}, vector(0, 0), vector(0, 0.5), vector(1, c.reference), vector(1, c.engine))
		if got.NewNaN != c.newNaN || got.NewInf != c.newInf {
			t.Errorf("%v: new NaN %d, new Inf %d", c, got.NewNaN, got.NewInf)
		}
		if got.Failed != 1 || got.MaxAbs != inf || got.MeanAbs != inf || got.MaxRel != inf || got.SNR != -inf || got.CosineMin != 0 || got.MaxAbsCase != 1 {
			t.Errorf("%v: %+v", c, got)
		}
		if w := got.Worst; w == nil || w.Case != 1 || w.Index[0] != 1 || w.Excess != inf || !same(w.Reference, c.reference) || !same(w.Engine, c.engine) {
			t.Errorf("%v: worst is %+v", c, w)
		}
	}
}

func TestCosine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		reference, engine tensor.Tensor
		want              float64
	}{
		{"both zero", vector(0, 0), vector(0, 0), 1},
		{"zero reference", vector(0, 0), vector(0, 1), 0},
		{"zero engine", vector(0, 1), vector(0, 0), 0},
		{"opposite", vector(3, 4), vector(-3, -4), -1},
		{"right angle", vector(1, 0), vector(0, 1), 0},
		{"scaled", vector(3, 4), vector(6, 8), 1},
		{"squares overflow", vector(1e200, 0), vector(2e200, 0), 0},
		{"squares underflow", vector(1e-200, 0), vector(-1e-200, 0), 0},
		{"matching NaN left out", vector(3, 4, nan), vector(-3, -4, nan), -1},
	} {
		if got := compare(tensor.Options{}, c.reference, c.engine).CosineMin; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestSNR(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reference, engine, want float64
	}{
		{10, 9, 20}, {0, 1, -inf}, {1e200, 2e200, -inf}, {1, 1 + 1e-9, 180}, {1e-200, 2e-200, -inf},
	} {
		if got := compare(tensor.Options{}, vector(c.reference), vector(c.engine)).SNR; math.Abs(got-c.want) > 1e-5 {
			t.Errorf("%v against %v: %v dB, want %v", c.engine, c.reference, got, c.want)
		}
	}
}

func TestCompareIntegersExactly(t *testing.T) {
	t.Parallel()
	const big = 1 << 53
	got := compare(tensor.Options{}, tensortest.Must(tensor.New([]int64{big, -big}, 2)), tensortest.Must(tensor.New([]int64{big + 1, -big - 1}, 2)))
	if got.Failed != 2 || got.MaxAbs == 0 || got.CosineMin > 1 {
		t.Errorf("int64: %+v", got)
	}
	got = compare(tensor.Options{}, tensortest.Must(tensor.New([]uint64{math.MaxUint64}, 1)), tensortest.Must(tensor.New([]uint64{math.MaxUint64 - 1}, 1)))
	if got.Failed != 1 {
		t.Errorf("uint64: %+v", got)
	}
	got = compare(tensor.Options{}, tensortest.Must(tensor.New([]int32{-1, 7}, 2)), tensortest.Must(tensor.New([]int64{-1, 7}, 2)))
	if got.Failed != 0 {
		t.Errorf("int32 against int64: %+v", got)
	}
	got = compare(tensor.Options{}, tensortest.Must(tensor.New([]bool{true, false}, 2)), tensortest.Must(tensor.New([]bool{true, true}, 2)))
	if got.Failed != 1 || got.MaxAbs != 1 {
		t.Errorf("bool: %+v", got)
	}
}

func TestCompareRefuses(t *testing.T) {
	t.Parallel()
	x := vector(1, 2)
	for name, engine := range map[string]tensor.Tensor{
		"shape": tensortest.Must(tensor.New([]float64{1, 2}, 1, 2)),
		"class": tensortest.Must(tensor.New([]int64{1, 2}, 2)),
		"bool":  tensortest.Must(tensor.New([]bool{true, true}, 2)),
	} {
		acc := tensor.NewComparison(tensor.Options{})
		err := acc.Add(17, x, engine)
		tensortest.WantKind(t, err, tensor.ErrMismatch)
		if err == nil || !strings.Contains(err.Error(), "case 17") || acc.Result().Cases != 0 {
			t.Errorf("%s: %v, %+v", name, err, acc.Result())
		}
	}
	err := tensor.NewComparison(tensor.Options{}).Add(0, x, tensortest.Must(tensor.New([]float64{1, 2}, 1, 2)))
	if err == nil || !strings.Contains(err.Error(), "[2]") || !strings.Contains(err.Error(), "[1 2]") {
		t.Errorf("%v names not both shapes", err)
	}
	for _, tol := range []float64{-1, nan, inf} {
		for _, o := range []tensor.Options{{RTol: tol}, {ATol: tol}} {
			if tensor.NewComparison(o).Add(0, x, x) == nil {
				t.Errorf("%+v accepted", o)
			}
		}
	}
	for _, pair := range [][2]tensor.Tensor{{{}, x}, {x, {}}} {
		if err := tensor.NewComparison(tensor.Options{}).Add(0, pair[0], pair[1]); !errors.Is(err, tensor.ErrUnsupported) {
			t.Errorf("zero tensor: %v", err)
		}
	}
}

func TestWorstIndex(t *testing.T) {
	t.Parallel()
	values := make([]float32, 2*3*500)
	ref := tensortest.Must(tensor.New(values, 2, 3, 500))
	values[1*1500+2*500+499], values[7] = 2, -1
	got := compare(tensor.Options{}, ref, tensortest.Must(tensor.New(values, 2, 3, 500))).Worst
	if want := (&tensor.Element{Index: []int64{1, 2, 499}, Engine: 2, Excess: 2}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestCompareAsNaive compares with formulas that are written down one by one.
func TestCompareAsNaive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{1, 3, 700}).Draw(t, "width")
		rows := rapid.IntRange(1, 3).Draw(t, "rows")
		n := width * rows
		value := rapid.Float32Range(-100, 100)
		ref := rapid.SliceOfN(value, n, n).Draw(t, "reference")
		eng := append([]float32{}, ref...)
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			eng[rapid.IntRange(0, n-1).Draw(t, "at")] = value.Draw(t, "to")
		}
		options := tensor.Options{RTol: rapid.Float64Range(0, 1).Draw(t, "rtol"), ATol: rapid.Float64Range(0, 10).Draw(t, "atol")}
		got := compare(options, tensortest.Must(tensor.New(ref, int64(rows), int64(width))), tensortest.Must(tensor.New(eng, int64(rows), int64(width))))

		var failed, agreed int64
		var maxAbs, sumAbs, maxRel, ref2, eng2, err2, dot float64
		for i := range ref {
			r, e := float64(ref[i]), float64(eng[i])
			abs := math.Abs(e - r)
			if abs > options.ATol+options.RTol*math.Abs(r) {
				failed++
			}
			maxAbs, sumAbs = max(maxAbs, abs), sumAbs+abs
			maxRel = max(maxRel, abs/max(math.Abs(r), tensor.RelFloor))
			ref2, eng2, err2, dot = ref2+r*r, eng2+e*e, err2+abs*abs, dot+r*e
		}
		for row := range rows {
			if firstMax(ref[row*width:(row+1)*width]) == firstMax(eng[row*width:(row+1)*width]) {
				agreed++
			}
		}
		if got.Failed != failed || got.MaxAbs != maxAbs || got.MaxRel != maxRel || !near(got.MeanAbs, sumAbs/float64(n)) {
			t.Fatalf("failed %d, max abs %v, max rel %v, mean %v: %+v", failed, maxAbs, maxRel, sumAbs/float64(n), got)
		}
		if err2 > 1e-200 && ref2 > 1e-200 && !near(got.SNR, 10*math.Log10(ref2/err2)) {
			t.Fatalf("SNR %v, want %v", got.SNR, 10*math.Log10(ref2/err2))
		}
		if ref2 > 1e-200 && eng2 > 1e-200 && !near(got.CosineMin, dot/math.Sqrt(ref2*eng2)) {
			t.Fatalf("cosine %v, want %v", got.CosineMin, dot/math.Sqrt(ref2*eng2))
		}
		if width > 1 && (got.Top1Rows != int64(rows) || got.Top1 != float64(agreed)/float64(rows)) || width == 1 && !math.IsNaN(got.Top1) {
			t.Fatalf("top-1 %v of %d rows, want %d of %d", got.Top1, got.Top1Rows, agreed, rows)
		}
	})
}

func firstMax(row []float32) int {
	at := 0
	for i, v := range row {
		if v > row[at] {
			at = i
		}
	}
	return at
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

func TestWorstIsTheFirstOfEquals(t *testing.T) {
	t.Parallel()
	for _, bad := range []float64{2, nan} {
		zero, off := vector(0, 0, 0), vector(0, bad, bad)
		if got := compare(tensor.Options{}, zero, zero, zero, off, zero, off); got.Worst.Case != 1 || got.Worst.Index[0] != 1 || got.MaxAbsCase != 1 {
			t.Errorf("%v: max abs in case %d, worst %+v", bad, got.MaxAbsCase, got.Worst)
		}
	}
}

// A constant shows nothing, and a case of NaN alone neither, however many cases have the reference's bits.
func TestIdenticalCountsWhatSaysSomething(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value func(i int) float64
		want  int
	}{
		"other values in each case": {func(i int) float64 { return float64(i) }, 20},
		"a constant":                {func(int) float64 { return 1 }, 0},
		"NaN but for two cases": {func(i int) float64 {
			if i < 2 {
				return float64(i + 1)
			}
			return nan
		}, 2},
	} {
		comparison := tensor.NewComparison(tensor.Options{})
		for i := range 20 {
			v := vector(c.value(i))
			if err := comparison.Add(i, v, v); err != nil {
				t.Fatal(err)
			}
		}
		if got := comparison.Result().Identical; got != c.want {
			t.Errorf("%s: %d identical cases, want %d", name, got, c.want)
		}
	}
}
