package tensor_test

import (
	"math"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

// A difference of the largest float64 is finite, and so is a tolerance.
func TestCompareLargestNumbers(t *testing.T) {
	t.Parallel()
	got := compare(tensor.Options{ATol: math.MaxFloat64}, vector(0), vector(math.MaxFloat64))
	if got.MaxAbs != math.MaxFloat64 || got.Failed != 0 {
		t.Errorf("largest error %g, %d failed; want %g and 0", got.MaxAbs, got.Failed, math.MaxFloat64)
	}
}

// Of cases that are equally far away, the first is named.
func TestFirstCaseOfEquals(t *testing.T) {
	t.Parallel()
	one, off := vector(1, 0), vector(1, 1)
	got := compare(tensor.Options{}, one, one, one, off, one, off)
	if got.MaxAbsCase != 1 || got.MaxRelCase != 1 || got.CosineMinCase != 1 {
		t.Errorf("largest error in case %d, largest relative error in case %d, smallest cosine in case %d; want 1 for each",
			got.MaxAbsCase, got.MaxRelCase, got.CosineMinCase)
	}
}

// The first class is a class.
func TestTop1OfTheFirstClass(t *testing.T) {
	t.Parallel()
	logits := tensortest.Must(tensor.New([]float32{2, 1, 1, 2}, 2, 2))
	for _, labels := range []tensor.Tensor{tensortest.Must(tensor.New([]int64{0, 0}, 2)), tensortest.Must(tensor.New([]uint64{0, 0}, 2))} {
		if correct, total, err := tensor.Top1(logits, labels); correct != 1 || total != 2 || err != nil {
			t.Errorf("%s: %d of %d, error %v; want 1 of 2", labels.DType, correct, total, err)
		}
	}
	_, _, err := tensor.Top1(tensor.Tensor{}, tensortest.Must(tensor.New([]int64{0}, 1)))
	tensortest.WantKind(t, err, tensor.ErrUnsupported)
	_, _, err = tensor.Top1(logits, tensor.Tensor{DType: tensor.Int64, Shape: []int64{2}})
	tensortest.WantKind(t, err, tensor.ErrMalformed)
}
