//go:build cgo

package main

import (
	"errors"
	"fmt"
	"slices"

	rt "github.com/yalue/onnxruntime_go"
)

// value is an input or output of the model.
type value struct {
	name  string
	kind  kind
	shape []int64 // -1 for a dimension of any size
}

// model is a loaded model. Several requests may run it at the same time.
type model struct {
	name            string
	inputs, outputs []value
	session         *rt.DynamicAdvancedSession
}

func open(path, name string) (*model, error) {
	in, out, err := rt.GetInputOutputInfo(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m := &model{name: name}
	if m.inputs, err = describe(in); err == nil {
		m.outputs, err = describe(out)
	}
	if err == nil && (len(in) == 0 || len(out) == 0) {
		err = errors.New("the model has no inputs or no outputs")
	}
	if err == nil {
		m.session, err = rt.NewDynamicAdvancedSession(path, names(m.inputs), names(m.outputs), nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func (m *model) close() error { return m.session.Destroy() }

func describe(infos []rt.InputOutputInfo) ([]value, error) {
	var found []value
	for _, info := range infos {
		k, ok := kindOf(info.DataType)
		if !ok || info.OrtValueType != rt.ONNXTypeTensor {
			return nil, fmt.Errorf("%s: this server has no values of its type", &info)
		}
		found = append(found, value{info.Name, k, info.Dimensions})
	}
	return found, nil
}

func names(values []value) []string {
	var all []string
	for _, v := range values {
		all = append(all, v.name)
	}
	return all
}

// run computes all outputs. It needs each input once.
func (m *model) run(given []array) ([]array, error) {
	in, err := m.order(given)
	if err != nil {
		return nil, err
	}
	out := make([]rt.Value, len(m.outputs))
	fed := make([]rt.Value, len(in))
	defer func() {
		for _, v := range append(fed, out...) {
			if v != nil {
				_ = v.Destroy() // it frees memory and cannot fail
			}
		}
	}()
	for i, t := range in {
		if err := t.check(m.inputs[i]); err != nil {
			return nil, fmt.Errorf("input %s: %w", t.name, err)
		}
		v, err := feed(t)
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", t.name, err)
		}
		fed[i] = v
	}
	for i, o := range m.outputs {
		v, err := room(o, batch(m.inputs, in))
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	if err := m.session.Run(fed, out); err != nil {
		return nil, err
	}
	var results []array
	for i, o := range m.outputs {
		t := array{name: o.name, kind: o.kind}
		if err := t.read(out[i]); err != nil {
			return nil, fmt.Errorf("output %s: %w", o.name, err)
		}
		results = append(results, t)
	}
	return results, nil
}

// order returns the tensors in the order of the model's inputs.
func (m *model) order(given []array) ([]array, error) {
	var in []array
	for _, want := range m.inputs {
		i := slices.IndexFunc(given, func(t array) bool { return t.name == want.name })
		if i < 0 {
			return nil, fmt.Errorf("no input %s: want %v", want.name, names(m.inputs))
		}
		in = append(in, given[i])
	}
	if len(given) != len(in) {
		return nil, fmt.Errorf("%d inputs: want each of %v once", len(given), names(m.inputs))
	}
	return in, nil
}

// input returns an empty tensor for an input of the model.
func (m *model) input(name string) (array, error) {
	i := slices.IndexFunc(m.inputs, func(v value) bool { return v.name == name })
	if i < 0 {
		return array{}, fmt.Errorf("no input %.80q: want %v", name, names(m.inputs))
	}
	return array{name: name, kind: m.inputs[i].kind}, nil
}

func feed(t array) (rt.Value, error) {
	if t.kind.code == text.code {
		v, err := rt.NewStringTensor(t.shape)
		if err != nil {
			return nil, err
		}
		if err := v.SetContents(t.texts); err != nil {
			return nil, errors.Join(err, v.Destroy())
		}
		return v, nil
	}
	if len(t.shape) > 0 {
		return rt.NewCustomDataTensor(t.shape, t.data, t.kind.code)
	}
	if t.kind.scalar == nil {
		return nil, fmt.Errorf("this server has no scalars of type %s", t.kind.name)
	}
	return t.kind.scalar(t.data)
}

// batch returns the leading size that all inputs with an open leading dimension have, or -1.
func batch(inputs []value, given []array) int64 {
	found := int64(-1)
	for i, t := range given {
		if len(t.shape) == 0 || inputs[i].shape[0] >= 0 {
			continue
		}
		if found >= 0 && t.shape[0] != found {
			return -1
		}
		found = t.shape[0]
	}
	return found
}

// room returns memory for an output that the binding cannot read if ONNX Runtime allocates it: a scalar, or a type
// that Go lacks. For others it returns nil. An open leading dimension is the batch.
func room(o value, batch int64) (rt.Value, error) {
	if o.kind.code == text.code || len(o.shape) > 0 && o.kind.read != nil {
		return nil, nil //nolint:nilnil // ONNX Runtime allocates this output
	}
	if len(o.shape) == 0 && o.kind.scalar != nil {
		return o.kind.scalar(make([]byte, o.kind.size))
	}
	shape := slices.Clone(o.shape)
	if len(shape) > 0 && shape[0] < 0 {
		shape[0] = batch
	}
	n, err := elements(shape)
	if err != nil || len(shape) == 0 {
		return nil, fmt.Errorf("output %s is %s %v, whose size is known after the run alone: this server cannot read it", o.name, o.kind.name, o.shape)
	}
	return rt.NewCustomDataTensor(shape, make([]byte, n*o.kind.size), o.kind.code)
}

// read copies a value of the library.
func (t *array) read(v rt.Value) (err error) {
	t.shape = append([]int64{}, v.GetShape()...)
	switch v := v.(type) {
	case *rt.StringTensor:
		t.texts, err = v.GetContents()
	case *rt.CustomDataTensor:
		t.data = v.GetData()
	default:
		t.data, err = t.kind.read(v)
	}
	return err
}
