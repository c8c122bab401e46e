//go:build cgo

package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// status is the answer of TensorFlow Serving to GET /v1/models/NAME.
func (h *handler) status(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"model_version_status": []any{map[string]any{
		"version": "1", "state": "AVAILABLE", "status": map[string]string{"error_code": "OK", "error_message": ""}}}})
}

// predict answers POST /v1/models/NAME:predict, with "inputs" or with "instances".
func (h *handler) predict(w http.ResponseWriter, r *http.Request, body []byte) error {
	name, predict := strings.CutSuffix(r.PathValue("model"), ":predict")
	if !predict || name != h.model.name {
		return fmt.Errorf("no %.80q: want %s:predict", r.PathValue("model"), h.model.name)
	}
	var request struct {
		Signature string `json:"signature_name"`
		Inputs    any    `json:"inputs"`
		Instances []any  `json:"instances"`
	}
	if err := decode(body, &request); err != nil {
		return err
	}
	if (request.Inputs == nil) == (request.Instances == nil) {
		return errors.New(`want "inputs" or "instances"`)
	}
	columns := h.columns(request.Inputs)
	if request.Instances != nil {
		var err error
		if columns, err = h.transpose(request.Instances); err != nil {
			return err
		}
	}
	out, err := h.runNested(columns)
	if err != nil {
		return err
	}
	if request.Instances == nil {
		answer := any(out)
		if len(out) == 1 {
			answer = out[h.model.outputs[0].name]
		}
		reply(w, http.StatusOK, map[string]any{"outputs": answer})
		return nil
	}
	rows := make([]any, len(request.Instances))
	for i := range rows {
		row := make(map[string]any)
		for name, column := range out {
			list, ok := column.([]any)
			if !ok || len(list) != len(rows) {
				return fmt.Errorf(`output %s has no row for each instance: send "inputs"`, name)
			}
			row[name] = list[i]
		}
		rows[i] = row
		if len(row) == 1 {
			rows[i] = row[h.model.outputs[0].name]
		}
	}
	reply(w, http.StatusOK, map[string]any{"predictions": rows})
	return nil
}

// columns returns the inputs by name. A model with one input may get its value alone.
func (h *handler) columns(v any) map[string]any {
	if columns, ok := v.(map[string]any); ok && columns["b64"] == nil {
		return columns
	}
	return map[string]any{h.model.inputs[0].name: v}
}

// transpose returns the inputs by name from a list of instances.
func (h *handler) transpose(instances []any) (map[string]any, error) {
	lists := make(map[string][]any)
	for i, instance := range instances {
		for name, v := range h.columns(instance) {
			if len(lists[name]) != i {
				return nil, fmt.Errorf("instance %d has input %.80q, which others lack", i, name)
			}
			lists[name] = append(lists[name], v)
		}
	}
	columns := make(map[string]any)
	for name, list := range lists {
		if len(list) != len(instances) {
			return nil, fmt.Errorf("some instances lack input %.80q", name)
		}
		columns[name] = list
	}
	return columns, nil
}

// plain answers POST /predict: an object with a nested list for each input, and one for each output.
func (h *handler) plain(w http.ResponseWriter, _ *http.Request, body []byte) error {
	var columns map[string]any
	if err := decode(body, &columns); err != nil {
		return err
	}
	out, err := h.runNested(columns)
	if err == nil {
		reply(w, http.StatusOK, out)
	}
	return err
}

// runNested runs the model on nested lists, which have the shapes of the inputs.
func (h *handler) runNested(columns map[string]any) (map[string]any, error) {
	var in []array
	for name, v := range columns {
		t, err := h.model.input(name)
		if err != nil {
			return nil, err
		}
		if t.shape, err = shapeOf(v); err == nil {
			err = t.fill(flatten(nil, v))
		}
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", name, err)
		}
		in = append(in, t)
	}
	results, err := h.model.run(in)
	if err != nil {
		return nil, err
	}
	out := make(map[string]any)
	for _, t := range results {
		values, err := t.values()
		if err != nil {
			return nil, err
		}
		out[t.name] = nest(values, t.shape)
	}
	return out, nil
}

// shapeOf returns the shape of nested lists. All lists of a level must have the same length.
func shapeOf(v any) ([]int64, error) {
	list, ok := v.([]any)
	if !ok {
		return []int64{}, nil
	}
	if len(list) == 0 {
		return nil, errors.New("an empty list")
	}
	first, err := shapeOf(list[0])
	if err != nil {
		return nil, err
	}
	for _, each := range list[1:] {
		shape, err := shapeOf(each)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(first, shape) {
			return nil, errors.New("lists of different lengths")
		}
	}
	return append([]int64{int64(len(list))}, first...), nil
}

// nest returns the elements as nested lists.
func nest(values []any, shape []int64) any {
	if len(shape) == 0 {
		return values[0]
	}
	list := make([]any, 0, shape[0])
	for part := range slices.Chunk(values, max(len(values)/int(max(shape[0], 1)), 1)) {
		list = append(list, nest(part, shape[1:]))
	}
	return list
}
