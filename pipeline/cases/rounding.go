package cases

import (
	"fmt"
	"math"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// rounding is what a conversion changes in inputs.
type rounding []roundedInput

// roundedInput is an input whose values a conversion changed, by its columns.
type roundedInput struct {
	info    validators.TensorInfo
	columns []roundedColumn
}

// roundedColumn has the range of the values of a column, and the largest error among them.
type roundedColumn struct{ low, high, largest float64 }

// share is the largest error as a share of the range of the values.
func (c roundedColumn) share() float64 {
	if c.high <= c.low {
		return 0
	}
	return c.largest / (c.high - c.low)
}

// note notes what a conversion changes in each column of an input.
func (r *rounding) note(info validators.TensorInfo, given, converted tensor.Tensor) {
	var of *roundedInput
	for i := range *r {
		if (*r)[i].info.Name == info.Name {
			of = &(*r)[i]
		}
	}
	if of == nil {
		*r = append(*r, roundedInput{info: info})
		of = &(*r)[len(*r)-1]
		for range columnsOf(given) {
			of.columns = append(of.columns, roundedColumn{low: math.Inf(1), high: math.Inf(-1)})
		}
	}
	to := converted.Float64s()
	for i, v := range given.Float64s() {
		if c := &of.columns[i%len(of.columns)]; !math.IsNaN(v) && !math.IsInf(v, 0) {
			c.low, c.high, c.largest = min(c.low, v), max(c.high, v), max(c.largest, math.Abs(v-to[i]))
		}
	}
}

// most names the input or column that loses most, as a share of the range of its values. It is empty if none loses anything.
func (r rounding) most() string {
	most, name := 0.0, ""
	for _, of := range r {
		for i, c := range of.columns {
			if c.share() > most {
				most, name = c.share(), columnName(of.info, i, len(of.columns))
			}
		}
	}
	return name
}

// columnsOf is how many columns a tensor has: places along its last dimension.
func columnsOf(t tensor.Tensor) int {
	if len(t.Shape) < 2 {
		return 1
	}
	return int(max(t.Shape[len(t.Shape)-1], 1))
}

// columnName names a column of an input, or the input if it is its only one.
func columnName(info validators.TensorInfo, column, columns int) string {
	input := fmt.Sprintf("input %q", registry.PlainText(info.Name))
	switch {
	case columns == 1:
		return input
	case len(info.Names) == columns:
		return fmt.Sprintf("column %q of %s", registry.PlainText(info.Names[column]), input)
	}
	return fmt.Sprintf("column %d of %s", column, input)
}
