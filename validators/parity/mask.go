package parity

import (
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Masks select the elements of outputs that count: those where an input of the cases is not 0.
// The dimensions of the input must be the first of the output's, so a mask [batch, seq] selects
// whole rows of [batch, seq, width]. The other elements are removed before the comparison: they
// affect no figure and may be NaN. The zero Masks selects all elements.
type Masks struct {
	Dir    string            // folder of the cases
	Shards []artifact.Shard  // of the cases
	Inputs map[string]string // by output: the name of its mask in each shard of the cases
}

// masks opens the i-th shard of the cases; it returns nil if no output has a mask.
func (run Run) masks(i int) (*tensorfile.File, error) {
	if len(run.Masks.Inputs) == 0 {
		return nil, nil
	}
	return run.open(run.Masks.Dir, run.Masks.Shards[i].File)
}

// mask is the mask of one case.
type mask struct {
	shape []int64
	kept  []int64 // indices of its elements that are not 0
}

func newMask(t tensor.Tensor) mask {
	m := mask{shape: t.Shape}
	for i := range t.Len() {
		if t.Float64(i) != 0 {
			m.kept = append(m.kept, int64(i))
		}
	}
	return m
}

// check checks that the mask fits an output of the shape.
func (m mask) check(shape []int64) error {
	if len(m.shape) <= len(shape) && slices.Equal(m.shape, shape[:len(m.shape)]) {
		return nil
	}
	return registry.Errorf(registry.CodeInvalid,
		"its mask has shape %v and the output %v: want a mask whose dimensions are the output's first", m.shape, shape)
}

// pick returns the elements of an output that count: [kept, ...], where the dimensions of the
// mask are merged into one. check must have accepted the output's shape.
func (m mask) pick(t tensor.Tensor) tensor.Tensor {
	rest := t.Shape[len(m.shape):]
	size := int64(t.DType.Size())
	for _, d := range rest {
		size *= d
	}
	picked := tensor.Tensor{DType: t.DType, Shape: append([]int64{int64(len(m.kept))}, rest...)}
	picked.Data = make([]byte, 0, int64(len(m.kept))*size)
	for _, at := range m.kept {
		picked.Data = append(picked.Data, t.Data[at*size:(at+1)*size]...)
	}
	return picked
}

// place converts an index in the result of pick into one in the output.
func (m mask) place(index []int64) []int64 {
	whole := make([]int64, len(m.shape), len(m.shape)+len(index)-1)
	at := m.kept[index[0]]
	for axis := len(m.shape) - 1; axis >= 0; axis-- {
		whole[axis] = at % m.shape[axis]
		at /= m.shape[axis]
	}
	return append(whole, index[1:]...)
}

// result returns the figures of an output, with the worst element at its index in the output.
func (run Run) result(c *tensor.Comparison, output string) (tensor.Result, error) {
	result := c.Result()
	name, masked := run.Masks.Inputs[output]
	if !masked || result.Worst == nil {
		return result, nil
	}
	for i, shard := range run.Masks.Shards {
		row := result.Worst.Case - shard.First
		if row < 0 || row >= shard.Count {
			continue
		}
		file, err := run.masks(i)
		if err != nil {
			return tensor.Result{}, err
		}
		defer file.Close()
		t, err := file.Rows(name, int64(row), int64(row)+1)
		if err != nil {
			return tensor.Result{}, err
		}
		result.Worst.Index = newMask(t).place(result.Worst.Index)
	}
	return result, nil
}
