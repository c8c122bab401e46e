package accuracy

import (
	"fmt"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// mismatch is outputs and labels that do not fit together.
type mismatch struct{ text string }

func (m mismatch) Error() string { return m.text }
func (mismatch) Unwrap() error   { return tensor.ErrMismatch }

func mismatchf(format string, args ...any) error { return mismatch{fmt.Sprintf(format, args...)} }

// eachCase calls a function with the values of the output and of the labels of each case, as many
// of both. Dimensions of 1 do not count.
func eachCase(output, labels tensor.Tensor, do func(output, labels []float64) error) error {
	if err := validate(output, labels); err != nil {
		return err
	}
	if !slices.Equal(bare(output.Shape), bare(labels.Shape)) {
		return mismatchf("labels have shape %v, outputs %v: want as many labels as outputs", labels.Shape, output.Shape)
	}
	if output.Len() == 0 {
		return nil
	}
	return rowByRow(output, labels, func(_ int, output, labels []float64) error { return do(output, labels) })
}

// rowByRow calls a function with the values of each case, whose dimension is the first of both tensors.
func rowByRow(output, labels tensor.Tensor, do func(at int, output, labels []float64) error) error {
	for i := range output.Shape[0] {
		got, err := output.Rows(i, i+1)
		if err != nil {
			return err
		}
		want, err := labels.Rows(i, i+1)
		if err != nil {
			return err
		}
		if err := do(int(i), got.Float64s(), want.Float64s()); err != nil {
			return err
		}
	}
	return nil
}

// bare is a shape without dimensions of 1 behind the first.
func bare(shape []int64) []int64 {
	out := slices.Clone(shape[:1])
	for _, n := range shape[1:] {
		if n != 1 {
			out = append(out, n)
		}
	}
	return out
}

func validate(output, labels tensor.Tensor) error {
	for _, t := range []tensor.Tensor{output, labels} {
		if err := t.Validate(); err != nil {
			return err
		}
		if len(t.Shape) == 0 {
			return mismatchf("a scalar: want a dimension of cases in front")
		}
	}
	if output.Shape[0] != labels.Shape[0] {
		return mismatchf("labels of %d cases, outputs of %d", labels.Shape[0], output.Shape[0])
	}
	return nil
}

// eachRanked calls a function with the rows of scores of each case, and the class that is the label
// of each row.
func eachRanked(output, labels tensor.Tensor, do func(rows [][]float64, classes []int) error) error {
	if err := validate(output, labels); err != nil {
		return err
	}
	last := len(output.Shape) - 1
	if last < 1 || !slices.Equal(bare(output.Shape[:last]), bare(labels.Shape)) {
		return mismatchf("labels have shape %v, scores %v: want %v, one label for each row", labels.Shape, output.Shape, output.Shape[:max(last, 0)])
	}
	if labels.DType.Class() == tensor.ClassFloat {
		return mismatchf("labels are %s: want integers, the numbers of classes", labels.DType)
	}
	width := int(output.Shape[last])
	if output.Len() == 0 {
		return nil
	}
	for i := range output.Shape[0] {
		scores, err := output.Rows(i, i+1)
		if err != nil {
			return err
		}
		of, err := labels.Rows(i, i+1)
		if err != nil {
			return err
		}
		classes := make([]int, of.Len())
		for row, label := range of.Float64s() {
			if !(label >= 0 && label < float64(width)) {
				return mismatchf("label %v at row %d of case %d: expected 0 to %d", label, row, i, width-1)
			}
			classes[row] = int(label)
		}
		if err := do(slices.Collect(slices.Chunk(scores.Float64s(), width)), classes); err != nil {
			return err
		}
	}
	return nil
}

// rank counts the classes of a row that are before one: those with a larger value, and of equal
// values those with a lower number. A row with a NaN has no order: no class is among any first ones.
func rank(row []float64, class int) int {
	before := 0
	for c, v := range row {
		switch {
		case math.IsNaN(v):
			return math.MaxInt
		case v > row[class], v == row[class] && c < class:
			before++
		}
	}
	return before
}
