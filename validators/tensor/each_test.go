package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// The figures over all cases are the worst, or the sum, of those of each case.
func TestEach(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	c := tensor.NewComparison(tensor.Options{ATol: 0.5})
	const cases = 40
	for i := range cases {
		reference, engine := make([]float64, 6), make([]float64, 6)
		for j := range reference {
			reference[j] = 3 * r.NormFloat64()
			engine[j] = reference[j]
			if r.IntN(2) == 0 {
				engine[j] += r.NormFloat64() / 2
			}
		}
		if i == 7 {
			engine[0] = math.NaN()
		}
		want, err := tensor.New(reference, 1, 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tensor.New(engine, 1, 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Add(i, want, got); err != nil {
			t.Fatal(err)
		}
	}
	all, result := c.Each(), c.Result()
	var sum tensor.CaseFigures
	sum.Cosine = 1
	for _, of := range all {
		sum = tensor.CaseFigures{Failed: sum.Failed + of.Failed, MaxAbs: max(sum.MaxAbs, of.MaxAbs), Cosine: min(sum.Cosine, of.Cosine),
			Error: max(sum.Error, of.Error), Equal: sum.Equal + of.Equal, Top1: sum.Top1 + of.Top1}
	}
	want := tensor.CaseFigures{Failed: result.Failed, MaxAbs: result.MaxAbs, Cosine: result.CosineMin, Error: result.CaseError,
		Equal: result.EqualMisses, Top1: result.Top1Misses}
	if len(all) != cases || sum != want || !math.IsInf(all[7].MaxAbs, 1) || all[8].Error <= 0 {
		t.Errorf("figures of %d cases make %+v, want %+v of %d", len(all), sum, want, cases)
	}
}

// A case without elements, or without rows to rank, has no share of them.
func TestEachOfNothing(t *testing.T) {
	t.Parallel()
	c := tensor.NewComparison(tensor.Options{})
	for _, shape := range [][]int64{{1, 0, 3}, {1, 1}} {
		empty, err := tensor.New(make([]float32, shape[len(shape)-1]%3), shape...)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Add(0, empty, empty); err != nil {
			t.Fatal(err)
		}
	}
	if each := c.Each(); !math.IsNaN(each[0].Equal) || !math.IsNaN(each[0].Top1) ||
		each[1].Equal != 0 || !math.IsNaN(each[1].Top1) || each[1].Cosine != 1 {
		t.Errorf("%+v, want no shares of nothing, and no top1 of one value", each)
	}
}
