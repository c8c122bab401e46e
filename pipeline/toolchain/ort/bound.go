//go:build cgo

package ort

import (
	"errors"

	rt "github.com/yalue/onnxruntime_go"

	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// bound is the memory that an engine reads its inputs from and leaves its outputs in, case after
// case, as long as cases have the same shapes. Making it anew for each case would cost as much
// as a run of a small model.
type bound struct {
	shard   *caserun.Shard // whose cases have these shapes
	shapes  [][]int64
	batched bool // whether some tensor kept its case dimension, as a batch of one
	rooms   [][]byte
	in      []rt.Value
	fixed   []rt.Value // outputs whose shape is known before the run; nil for others
	out     []rt.Value // of the last run
}

func (b *bound) destroy() {
	if b != nil {
		destroy(b.in)
		destroy(b.fixed)
	}
}

// fed returns what an input of the case that was fed last holds, or an invalid tensor.
func (b *bound) fed(i int, dtype tensor.DType) tensor.Tensor {
	if b == nil {
		return tensor.Tensor{}
	}
	return tensor.Tensor{DType: dtype, Shape: b.shapes[i], Data: b.rooms[i]}
}

// free frees the outputs that the library allocated.
func (b *bound) free() {
	for i, v := range b.out {
		if b.fixed[i] == nil && v != nil {
			_ = v.Destroy() // it frees memory and cannot fail
		}
	}
	b.out = b.out[:0]
}

// newValue wraps data. It copies only scalars and text.
func newValue(k kind, shape []int64, data []byte) (rt.Value, error) {
	switch {
	case k.text:
		return newText(shape, data)
	case len(data) == 0: // the binding wants a byte, which the library does not read
		return rt.NewCustomDataTensor(shape, make([]byte, 8), k.code)
	case len(shape) > 0:
		return rt.NewCustomDataTensor(shape, data, k.code)
	case k.scalar == nil:
		return nil, errors.New("a scalar of type " + string(k.dtype))
	}
	return k.scalar(data)
}

// newText copies text, whose bytes stand along the last dimension of shape.
func newText(shape []int64, data []byte) (rt.Value, error) {
	texts, err := tensor.UnpackText(tensor.Tensor{DType: tensor.Uint8, Shape: shape, Data: data})
	if err != nil {
		return nil, err
	}
	v, err := rt.NewStringTensor(shape[:len(shape)-1])
	if err != nil {
		return nil, err
	}
	if err := v.SetContents(texts); err != nil {
		return nil, errors.Join(err, v.Destroy())
	}
	return v, nil
}

func destroy(values []rt.Value) {
	for _, v := range values {
		if v != nil {
			_ = v.Destroy() // it frees memory and cannot fail
		}
	}
}
