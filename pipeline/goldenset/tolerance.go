package goldenset

import (
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Tolerance is how far a golden output may be from the evaluator's: ofRange times the
// range of the golden output's values in the cross-checked cases, of which infinities and fill values are left out, plus
// rtol times the size of the element.
// Integers and booleans must be equal, unless a rounding within the graph can go either way.
type Tolerance struct {
	ofRange, rtol float64
	rounded       bool // integers of 8 bits may differ by ofRange of their range, and by 1
}

// Tolerances. Sums of float32 in another order differ by some 1e-6 of the range in deep models;
// what a wrong operator does is far more. Half precision keeps 11 bits, and the runtime may keep
// more within the graph. In a graph that rounds to 8 bits, the last bit of a sum decides which
// of two steps an activation takes.
var (
	Float32   = Tolerance{ofRange: 1e-3, rtol: 1e-4}
	Half      = Tolerance{ofRange: 2e-2, rtol: 1e-2}
	Quantized = Tolerance{ofRange: 1e-1, rtol: 1e-2, rounded: true}
)

// crossCheckFloor is the absolute tolerance of outputs without any range, such as one number of one case.
const crossCheckFloor = 1e-6

// ToleranceOf is that for a model; nil for one that is not read.
func ToleranceOf(quantized bool, model *onnx.Model) Tolerance {
	switch {
	case quantized:
		return Quantized
	case model != nil && model.Tensors["float16"]+model.Tensors["bfloat16"] > 0:
		return Half
	}
	return Float32
}

// Options are the tolerances of an output with a range of values.
func (t Tolerance) Options(dtype tensor.DType, values float64) tensor.Options {
	switch {
	case dtype == tensor.Float16 || dtype == tensor.BFloat16:
		t = Tolerance{max(t.ofRange, Half.ofRange), max(t.rtol, Half.rtol), t.rounded}
	case dtype.Class() == tensor.ClassFloat:
	case t.rounded && dtype.Size() == 1 && dtype.Class() == tensor.ClassInteger:
		return tensor.Options{ATol: max(1, t.ofRange*values)}
	default:
		return tensor.Options{}
	}
	return tensor.Options{RTol: t.rtol, ATol: max(crossCheckFloor, t.ofRange*values)}
}
