package cases

import (
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
		im.noteOf(name, "reshaped", "from %v to %v", t.Shape, shape)
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
		im.noteOf(name, "kept", "as %s, which the model's framework takes; engines take %s, and verify compares them with the framework", t.DType, input.DType)
		return t, nil
	}
	converted, err := castTo(t, input.DType)
	if err != nil {
		return tensor.Tensor{}, err
	}
	im.noteOf(name, "converted", "from %s to %s", t.DType, input.DType)
	if text := roundedWhole(input, t, converted); text != "" {
		im.note("warning: %s", text)
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
