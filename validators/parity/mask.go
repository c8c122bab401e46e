package parity

import (
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Masks say which elements of outputs count: those at whose place an input of the
// cases is not 0. The dimensions of the input are the first of the output's, so that a
// mask [batch, seq] decides on whole rows of [batch, seq, width]. What does not count
// is left out before anything is compared: it is in no figure, not even as an element
// that agrees, and may be NaN. The zero Masks lets all elements count.
type Masks struct {
	Dir    string            // folder of the cases
	Shards []registry.Shard  // of the cases
	Inputs map[string]string // by output: the name of its mask in each shard of the cases
}

// open opens the i-th shard of the cases; nil where no output has a mask.
func (m Masks) open(i int, limits tensor.Limits) (*tensor.File, error) {
	if len(m.Inputs) == 0 {
		return nil, nil
	}
	return tensor.Open(filepath.Join(m.Dir, m.Shards[i].File), limits)
}

// mask is one case's mask.
type mask struct {
	shape []int64
	kept  []int64 // places of its elements that are not 0
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

// pick gives the elements of an output that count: [kept, ...], the dimensions of the
// mask made one. The output's shape is one that check lets pass.
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

// place turns an index of what pick gave into one of the output.
func (m mask) place(index []int64) []int64 {
	whole := make([]int64, len(m.shape), len(m.shape)+len(index)-1)
	at := m.kept[index[0]]
	for axis := len(m.shape) - 1; axis >= 0; axis-- {
		whole[axis] = at % m.shape[axis]
		at /= m.shape[axis]
	}
	return append(whole, index[1:]...)
}

// result gives the figures of an output, the worst element where it is in the output.
func (m Masks) result(c *tensor.Comparison, output string, limits tensor.Limits) (tensor.Result, error) {
	result := c.Result()
	name, masked := m.Inputs[output]
	if !masked || result.Worst == nil {
		return result, nil
	}
	for i, shard := range m.Shards {
		row := result.Worst.Case - shard.First
		if row < 0 || row >= shard.Count {
			continue
		}
		file, err := m.open(i, limits)
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
