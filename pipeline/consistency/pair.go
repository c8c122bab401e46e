package consistency

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// pair is what two runs gave for one case. All tensors have a leading dimension of 1.
type pair struct {
	number    int // of the case
	want, got map[string]tensor.Tensor
	inputs    map[string]tensor.Tensor
}

// pair is what one place of a trial gave, beside what it is compared with. Errors: ErrMismatch if
// the outputs have other shapes than a batch must give.
func (f *findings) pair(t trial, s shard, at int, done outcome) (made pair, err error) {
	if t.batch > 0 {
		return f.inBatch(t, s, at, done, f.engine.Outputs)
	}
	made.number = s.of.First + s.cases[at].row
	if made.inputs, err = rowOf(s.Path, names(f.set.Interface.Inputs), at); err != nil {
		return made, err
	}
	if made.want, err = f.set.outputs(f.set.reference.dir[s.Name], s.Name, at); err != nil {
		return made, err
	}
	made.got, err = f.set.outputs(done.dir[s.Name], s.Name, at)
	return made, err
}

// inBatch cuts the part of a case out of the outputs of its batch, to compare it with the outputs of the case alone, which are
// in a folder.
func (f *findings) inBatch(t trial, s shard, at int, done outcome, folder string) (pair, error) {
	c := s.cases[at]
	inputs, err := f.set.full(c)
	if err != nil {
		return pair{}, err
	}
	alone, err := f.set.outputs(folder, s.of.File, c.row)
	if err != nil {
		return pair{}, err
	}
	batch, err := f.set.outputs(done.dir[s.Name], s.Name, at/t.batch)
	if err != nil {
		return pair{}, err
	}
	own := inputs[f.set.Interface.Inputs[0].Name].Shape[0]
	made := pair{number: s.of.First + c.row, want: alone, got: make(map[string]tensor.Tensor), inputs: make(map[string]tensor.Tensor)}
	for name, input := range inputs {
		made.inputs[name] = led(input)
	}
	for _, output := range f.set.Interface.Outputs {
		if want := alone[output.Name]; len(want.Shape) == len(output.Shape) { // the case dimension was the batch
			made.want[output.Name] = led(want)
		}
		all := batch[output.Name]
		all.Shape = all.Shape[1:]
		if len(all.Shape) == 0 || all.Shape[0] != own*int64(t.batch) {
			return pair{}, fmt.Errorf("output %s of a batch has the shape %v, want %d in front: %w",
				output.Name, all.Shape, own*int64(t.batch), tensor.ErrMismatch)
		}
		first := int64(at%t.batch) * own
		got, err := all.Rows(first, first+own)
		if err != nil {
			return pair{}, err
		}
		made.got[output.Name] = led(got)
	}
	return made, nil
}

// led puts a dimension of 1 in front.
func led(t tensor.Tensor) tensor.Tensor {
	t.Shape = append([]int64{1}, t.Shape...)
	return t
}

// differs reports whether a bit of an output differs.
func (p pair) differs() bool {
	for name, want := range p.want {
		if got := p.got[name]; !slices.Equal(want.Shape, got.Shape) || !bytes.Equal(want.Data, got.Data) {
			return true
		}
	}
	return false
}

// oneNaN reports whether one side has a NaN in an output and the other has not.
func (p pair) oneNaN() bool {
	for name, want := range p.want {
		if hasNaN(want) != hasNaN(p.got[name]) {
			return true
		}
	}
	return false
}

func hasNaN(t tensor.Tensor) bool { return slices.ContainsFunc(t.Float64s(), math.IsNaN) }
