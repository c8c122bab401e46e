//go:build cgo

package ort

import (
	"context"
	"errors"
	"slices"
	"time"

	rt "github.com/yalue/onnxruntime_go"

	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Feed reads the inputs of a case of a shard that was checked against the engine.
func (e *engine) Feed(s *caserun.Shard, c int64) error {
	if e.bound == nil || e.bound.shard != s {
		if err := e.bind(s); err != nil {
			return err
		}
	}
	b := e.bound
	for i, input := range e.inputs {
		if err := s.Read(input.name, c, b.rooms[i]); err != nil {
			return err
		}
		if !input.copied(b.shapes[i]) {
			continue
		}
		made, err := newValue(input.kind, b.shapes[i], b.rooms[i])
		if err != nil {
			return e.badInput(input, err)
		}
		destroy(b.in[i : i+1])
		b.in[i] = made
	}
	return nil
}

func (e *engine) badInput(input value, err error) error {
	return driverproc.Errorf(driverproc.BadInput, "engine %s: input %q: %v", e.id, input.name, err)
}

// bind makes the memory for the cases of a shard, or keeps it if they have the same shapes.
func (e *engine) bind(s *caserun.Shard) error {
	made := &bound{shard: s}
	for _, input := range e.inputs {
		shape, batched := s.Row(input.slot())
		made.shapes, made.batched = append(made.shapes, shape), made.batched || batched
	}
	if e.bound != nil && slices.EqualFunc(made.shapes, e.bound.shapes, slices.Equal) && made.batched == e.bound.batched {
		e.bound.shard = s
		return nil
	}
	e.bound.destroy()
	e.bound = made
	for i, input := range e.inputs {
		room := make([]byte, s.RowBytes(input.name))
		made.rooms, made.in = append(made.rooms, room), append(made.in, nil)
		if input.copied(made.shapes[i]) {
			continue
		}
		v, err := newValue(input.kind, made.shapes[i], room)
		if err != nil {
			return e.badInput(input, err)
		}
		made.in[i] = v
	}
	var err error
	made.fixed, err = e.allocate(made.batched)
	return err
}

// Run runs the case that was fed, and returns the duration of the run alone. The outputs are in
// out until freed.
func (e *engine) Run(context.Context) (time.Duration, error) {
	elapsed, err := e.run()
	if err != nil {
		return 0, e.failed(err.Error())
	}
	return elapsed, nil
}

// run is Run with the library's own error.
func (e *engine) run() (time.Duration, error) {
	b := e.bound
	b.out = append(b.out[:0], b.fixed...)
	begin := time.Now()
	err := e.session.Run(b.in, b.out)
	elapsed := time.Since(begin)
	if err != nil {
		b.free()
		return 0, err
	}
	return elapsed, nil
}

// allocate allocates the outputs whose shape is known before the run; the library allocates the
// others. The binding cannot read outputs that the library allocated if they are scalars or of
// a type that Go does not have. For those, an open leading dimension is taken as the batch: of one
// case, or of as many as a case that is a whole batch has. A run fails where it is something else.
func (e *engine) allocate(batched bool) ([]rt.Value, error) {
	batch := int64(1)
	if !batched {
		batch = e.batch()
	}
	out := make([]rt.Value, len(e.outputs))
	for i, o := range e.outputs {
		shape := slices.Clone(o.shape)
		if o.kind.bytes == nil && len(shape) > 0 && shape[0] < 0 {
			shape[0] = batch
		}
		if slices.ContainsFunc(shape, func(n int64) bool { return n <= 0 }) {
			if o.kind.bytes == nil {
				return out, driverproc.Errorf(driverproc.UnsupportedFormat,
					"engine %s: output %q is %s with an open dimension: %v", e.id, o.name, o.kind.dtype, o.shape)
			}
			continue
		}
		size, err := tensor.Info{DType: o.kind.dtype, Shape: shape}.Bytes()
		if err == nil && size > tensor.DefaultMaxTensorBytes {
			err = errors.New("more than 2 GiB")
		}
		if err == nil {
			out[i], err = newValue(o.kind, shape, make([]byte, size))
		}
		if err != nil {
			return out, driverproc.Errorf(driverproc.UnsupportedFormat, "engine %s: output %q: %v", e.id, o.name, err)
		}
	}
	return out, nil
}

// batch returns the leading size of all inputs whose leading dimension is open, or -1 where they differ or there are none.
func (e *engine) batch() int64 {
	found := int64(-1)
	for i, input := range e.inputs {
		if len(input.shape) == 0 || input.shape[0] >= 0 {
			continue
		}
		size := e.bound.shapes[i][0]
		if found >= 0 && size != found {
			return -1
		}
		found = size
	}
	return found
}

// Free frees the outputs that the library allocated.
func (e *engine) Free() { e.bound.free() }

// Outputs returns the outputs as tensors, in the library's memory. If the case was a batch of one, an
// output with a leading dimension of 1 keeps that as its case dimension.
func (e *engine) Outputs() ([]tensor.Tensor, error) {
	out := e.bound.out
	results := make([]tensor.Tensor, 0, len(out))
	for i, o := range e.outputs {
		t := tensor.Tensor{DType: o.kind.dtype, Shape: out[i].GetShape()}
		if custom, ok := out[i].(*rt.CustomDataTensor); ok {
			t.Data = custom.GetData()
		} else if o.kind.bytes != nil {
			t.Data = o.kind.bytes(out[i])
		}
		if !e.bound.batched || len(t.Shape) == 0 || t.Shape[0] != 1 {
			t.Shape = append([]int64{1}, t.Shape...)
		}
		if err := t.Validate(); err != nil {
			return nil, driverproc.Errorf(driverproc.ToolFailed, "engine %s: output %q: %v", e.id, o.name, err)
		}
		results = append(results, t)
	}
	return results, nil
}
