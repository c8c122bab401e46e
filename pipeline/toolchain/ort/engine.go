//go:build cgo

package ort

import (
	"errors"
	"slices"
	"strings"
	"time"

	rt "github.com/yalue/onnxruntime_go"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// engine is a loaded model.
type engine struct {
	id, path string
	settings settings
	session  *rt.DynamicAdvancedSession
	inputs   []value
	outputs  []value // the selected ones
	load     time.Duration
}

// open loads the engine once to learn its inputs and outputs. Call start to run it.
func open(e toolchain.RunEngine, o toolchain.RunOptions) (*engine, error) {
	set := settings{load: e.Load, providers: e.Providers, operators: e.Operators}
	if e.Load == nil {
		set.load = fixed(o.Level, o.Threads)
	}
	options, err := set.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = options.Destroy() }() // it frees memory and cannot fail
	in, out, err := rt.GetInputOutputInfoWithOptions(e.Path, options)
	if err != nil {
		return nil, loadError(e.ID, e.Path, err)
	}
	opened := &engine{id: e.ID, path: e.Path, settings: set}
	if opened.inputs, err = values(in); err != nil {
		return nil, err
	}
	if out, err = selected(out, o.SelectOutputs); err != nil {
		return nil, err
	}
	if opened.outputs, err = values(out); err != nil {
		return nil, err
	}
	if len(opened.inputs) == 0 || len(opened.outputs) == 0 {
		return nil, driverproc.Errorf(driverproc.UnsupportedFormat, "engine %s has no inputs or no outputs", e.ID)
	}
	return opened, nil
}

// start loads the engine to run it, and measures how long that takes.
func (e *engine) start() error {
	options, err := e.settings.open()
	if err != nil {
		return err
	}
	begin := time.Now()
	e.session, err = rt.NewDynamicAdvancedSession(e.path, names(e.inputs), names(e.outputs), options)
	e.load = time.Since(begin)
	if err = release(options, err); err != nil {
		return loadError(e.id, e.path, err)
	}
	return nil
}

func (e *engine) close() error { return e.session.Destroy() }

func names(values []value) []string {
	var all []string
	for _, v := range values {
		all = append(all, v.name)
	}
	return all
}

// selected returns the outputs with these names, in the model's order, or all outputs if names
// is empty.
func selected(outputs []rt.InputOutputInfo, only []string) ([]rt.InputOutputInfo, error) {
	if len(only) == 0 {
		return outputs, nil
	}
	var found []rt.InputOutputInfo
	var have []string
	for _, o := range outputs {
		have = append(have, o.Name)
		if slices.Contains(only, o.Name) {
			found = append(found, o)
		}
	}
	for _, name := range only {
		if !slices.Contains(have, name) {
			return nil, driverproc.Errorf(driverproc.BadInput, "no output %q: want some of %s", name, strings.Join(have, ", "))
		}
	}
	return found, nil
}

// run runs one case. It returns the outputs with a leading case dimension of 1, and the
// duration of the run alone.
func (e *engine) run(feed feed) ([]tensor.Tensor, time.Duration, error) {
	in, err := e.feed(feed)
	defer destroy(in)
	if err != nil {
		return nil, 0, err
	}
	out, err := e.allocate(feed.batched)
	defer func() { destroy(out) }()
	if err != nil {
		return nil, 0, err
	}
	begin := time.Now()
	err = e.session.Run(in, out)
	elapsed := time.Since(begin)
	if err != nil {
		return nil, 0, fault("engine "+e.id, err.Error())
	}
	results, err := e.collect(out, feed.batched)
	return results, elapsed, err
}

// feed creates the library's values for a case. They share its memory.
func (e *engine) feed(f feed) ([]rt.Value, error) {
	var made []rt.Value
	for _, input := range e.inputs {
		t := f.tensors[input.name]
		v, err := newValue(input.kind, t.Shape, t.Data)
		if err != nil {
			return made, driverproc.Errorf(driverproc.BadInput, "engine %s: input %q: %v", e.id, input.name, err)
		}
		made = append(made, v)
	}
	return made, nil
}

// newValue wraps data. It copies only scalars.
func newValue(k kind, shape []int64, data []byte) (rt.Value, error) {
	switch {
	case len(data) == 0: // the binding wants a byte, which the library does not read
		return rt.NewCustomDataTensor(shape, make([]byte, 8), k.code)
	case len(shape) > 0:
		return rt.NewCustomDataTensor(shape, data, k.code)
	case k.scalar == nil:
		return nil, errors.New("a scalar of type " + string(k.dtype))
	}
	return k.scalar(data)
}

// allocate allocates the outputs whose shape is known before the run; the library allocates the
// others. The binding cannot read outputs that the library allocated if they are scalars or of
// a type that Go does not have. For those, an open leading dimension is taken as the batch of
// one case.
func (e *engine) allocate(batched bool) ([]rt.Value, error) {
	out := make([]rt.Value, len(e.outputs))
	for i, o := range e.outputs {
		shape := slices.Clone(o.shape)
		if o.kind.bytes == nil && batched && len(shape) > 0 && shape[0] < 0 {
			shape[0] = 1
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

// collect copies the outputs. If the case was a batch of one, an output with a leading
// dimension of 1 keeps that as its case dimension.
func (e *engine) collect(out []rt.Value, batched bool) ([]tensor.Tensor, error) {
	var results []tensor.Tensor
	for i, o := range e.outputs {
		t := tensor.Tensor{DType: o.kind.dtype, Shape: slices.Clone(out[i].GetShape())}
		if custom, ok := out[i].(*rt.CustomDataTensor); ok {
			t.Data = slices.Clone(custom.GetData())
		} else if o.kind.bytes != nil {
			t.Data = slices.Clone(o.kind.bytes(out[i]))
		}
		if !batched || len(t.Shape) == 0 || t.Shape[0] != 1 {
			t.Shape = append([]int64{1}, t.Shape...)
		}
		if err := t.Validate(); err != nil {
			return nil, driverproc.Errorf(driverproc.ToolFailed, "engine %s: output %q: %v", e.id, o.name, err)
		}
		results = append(results, t)
	}
	return results, nil
}

func destroy(values []rt.Value) {
	for _, v := range values {
		if v != nil {
			_ = v.Destroy() // it frees memory and cannot fail
		}
	}
}
