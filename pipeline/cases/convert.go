package cases

import (
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// convert gives a tensor with one row per case the shape of an input, and its type unless the framework of the model takes the numbers as
// they are. Sizes that the model leaves open are taken from it.
func (im *importing) convert(t tensor.Tensor, name string, input validators.TensorInfo) (tensor.Tensor, error) {
	if input.DType == validators.Text {
		return im.convertText(t, input)
	}
	if im.texts[name] {
		return tensor.Tensor{}, registry.Errorf(registry.CodeInvalid, "it is text, the model wants %s", input.DType)
	}
	t, err := im.typed(t, name, input)
	if err != nil {
		return tensor.Tensor{}, err
	}
	if len(t.Shape) == 0 || t.Shape[0] == 0 {
		return tensor.Tensor{}, registry.Errorf(registry.CodeInvalid, "no cases: want one row for each")
	}
	want := im.perCase(t.Shape, input.Shape)
	if shape, ok := reshaped(t.Shape, want); ok && !slices.Equal(shape, t.Shape) {
		im.note("reshaped %q from %v to %v", name, t.Shape, shape)
		t.Shape = shape
	}
	im.widen(t.Shape, want, len(want) == len(input.Shape))
	return t, nil
}

// typed gives a tensor the type of an input, unless cases may hold its numbers as they are.
func (im *importing) typed(t tensor.Tensor, name string, input validators.TensorInfo) (tensor.Tensor, error) {
	if t.DType == input.DType {
		return t, nil
	}
	if im.Interface.Holds(input, t.DType) {
		im.note("kept %q as %s, which the model's framework takes; engines take %s, and verify compares them with the framework", name, t.DType, input.DType)
		return t, nil
	}
	converted, err := castTo(t, input.DType)
	if err != nil {
		return tensor.Tensor{}, err
	}
	im.note("converted %q from %s to %s", name, t.DType, input.DType)
	if text := roundedWhole(t, converted); text != "" {
		im.note("warning: input %q: %s", name, text)
	}
	return converted, nil
}

// perCase gives the dimensions of an input that each row of an array has. The first one is the batch, which the rows
// are, if it can be 1. A row with all of them is left as it is: the first one may be no batch, as
// where sequences come first.
func (im *importing) perCase(have []int64, want []validators.Dim) []validators.Dim {
	if len(want) == 0 || im.whole(have, want) || !im.Interface.Allows(want[0], 1) {
		return want
	}
	return want[1:]
}

// whole says whether each row of an array has all dimensions of an input, in sizes that it can have.
func (im *importing) whole(have []int64, want []validators.Dim) bool {
	if len(have) != len(want)+1 {
		return false
	}
	for i, dim := range want {
		if !im.open(dim) && !im.Interface.Allows(dim, have[i+1]) {
			return false
		}
	}
	return true
}

// widen lets open dimensions have the sizes that cases have. Where the dimensions of a case are all of its input's, a first
// one of 1 says nothing: it may be the batch.
func (im *importing) widen(have []int64, want []validators.Dim, all bool) {
	for i, dim := range want {
		at := len(have) - len(want) + i
		if !im.open(dim) || at < 1 || have[at] < 1 || all && i == 0 && have[at] == 1 {
			continue
		}
		usual := im.Interface.Dims[dim.Symbol].Max
		im.Interface.Dims[dim.Symbol] = validators.DimRange{Min: 1, Opt: have[at], Max: max(usual, have[at])}
	}
}

// convertText gives text the shape of an input: a column becomes one text per case.
func (im *importing) convertText(t tensor.Tensor, input validators.TensorInfo) (tensor.Tensor, error) {
	if t.DType != tensor.Uint8 || len(t.Shape) < 2 || t.Shape[0] == 0 {
		return tensor.Tensor{}, registry.Errorf(registry.CodeInvalid,
			"dtype is %s %v, the model wants text: an array of text in .npz, or a column of a .csv", t.DType, t.Shape)
	}
	rows, width := t.Shape[:len(t.Shape)-1], t.Shape[len(t.Shape)-1]
	if shape, ok := reshaped(rows, im.perCase(rows, input.Shape)); ok {
		t.Shape = append(shape[:len(shape):len(shape)], width)
	}
	return t, nil
}

// reshaped gives rows of as many elements the shape that each case has, where that is known
// but for one dimension at most. ok is false where they cannot have it.
func reshaped(have []int64, want []validators.Dim) (shape []int64, ok bool) {
	if len(have) == len(want)+1 {
		return have, true // as it is, or an error that says why not
	}
	perCase := int64(1)
	for _, n := range have[1:] {
		perCase *= n
	}
	shape, open := []int64{have[0]}, -1
	known := int64(1)
	for i, dim := range want {
		size := dim.Size
		if dim.Symbol != "" {
			if open >= 0 {
				return nil, false
			}
			open, size = i+1, 1
		}
		known *= size
		shape = append(shape, size)
	}
	if open >= 0 && known > 0 && perCase%known == 0 {
		shape[open] = perCase / known
		known = perCase
	}
	return shape, known == perCase
}

// maxWhole is the largest number up to which a float64 holds every integer.
const maxWhole = 1 << 53

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
