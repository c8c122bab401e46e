package cases

import (
	"fmt"
	"math"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// castTo converts the elements of a tensor to a type. An element may change by no more than that type
// rounds. Errors: CodeInvalid, which names the first that would.
func castTo(t tensor.Tensor, to tensor.DType) (tensor.Tensor, error) {
	if t.DType == to {
		return t, nil
	}
	values := t.Float64s()
	switch to {
	case tensor.Float32:
		return cast[float32](values, t.Shape, math.Inf(-1), math.Inf(1), false)
	case tensor.Float64:
		return tensor.New(values, t.Shape...)
	case tensor.Float16:
		return halves(values, t.Shape)
	case tensor.Int64:
		return cast[int64](values, t.Shape, -maxWhole, maxWhole, true)
	case tensor.Int32:
		return cast[int32](values, t.Shape, math.MinInt32, math.MaxInt32, true)
	case tensor.Int16:
		return cast[int16](values, t.Shape, math.MinInt16, math.MaxInt16, true)
	case tensor.Int8:
		return cast[int8](values, t.Shape, math.MinInt8, math.MaxInt8, true)
	case tensor.Uint8:
		return cast[uint8](values, t.Shape, 0, math.MaxUint8, true)
	case tensor.Uint16:
		return cast[uint16](values, t.Shape, 0, math.MaxUint16, true)
	case tensor.Uint32:
		return cast[uint32](values, t.Shape, 0, math.MaxUint32, true)
	}
	return tensor.Tensor{}, registry.Errorf(registry.CodeInvalid,
		"dtype is %s, the model wants %s: convert it before", t.DType, to)
}

func cast[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | float32](values []float64,
	shape []int64, least, most float64, whole bool) (tensor.Tensor, error) {
	out := make([]T, len(values))
	for i, v := range values {
		if whole && v != math.Trunc(v) || v < least || v > most || whole && math.IsNaN(v) {
			return tensor.Tensor{}, registry.Errorf(registry.CodeInvalid,
				"element %d is %v: want whole numbers from %v to %v", i, v, least, most)
		}
		out[i] = T(v)
	}
	return tensor.New(out, shape...)
}

// halves rounds numbers to float16. Errors: CodeInvalid, which names the first that is beyond its range.
func halves(values []float64, shape []int64) (tensor.Tensor, error) {
	out, err := tensor.NewFloat16(values, shape...)
	if err != nil {
		return tensor.Tensor{}, err
	}
	for i, v := range values {
		if math.IsInf(out.Float64(i), 0) && !math.IsInf(v, 0) {
			return tensor.Tensor{}, registry.Errorf(registry.CodeInvalid, "element %d is %v: float16 ends at 65504", i, v)
		}
	}
	return out, nil
}

// maxWhole is the largest number up to which a float64 holds every integer.
const maxWhole = 1 << 53

// roundedWhole describes the whole numbers that a conversion changed; empty if there are none. Such numbers are often
// identifiers or times, where the digits that are lost count.
func roundedWhole(info validators.TensorInfo, given, converted tensor.Tensor) string {
	changed, example := 0, ""
	values, columns := given.Float64s(), columnsOf(given)
	eachChanged(given, converted, func(i int) {
		if values[i] != math.Trunc(values[i]) {
			return
		}
		if changed++; changed == 1 {
			example = fmt.Sprintf("such as %.0f to %.0f in %s", values[i], converted.Float64(i), columnName(info, i%columns, columns))
		}
	})
	if changed == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s became others as %s, %s: the model's framework takes no more digits, so no comparison shows the effect",
		registry.Count(changed, "whole number"), registry.Count(len(values), "value"), converted.DType, example)
}

// eachChanged calls do with the index of each element that a conversion changed.
func eachChanged(given, converted tensor.Tensor, do func(i int)) {
	whole := given.DType.Class() == tensor.ClassInteger
	to := converted.Float64s()
	for i, v := range given.Float64s() {
		if v != to[i] && !math.IsNaN(v) || whole && math.Abs(v) > maxWhole {
			do(i)
		}
	}
}
