package ingest

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// generatedCases generates the cases of a spec: of what it declares, and else of what the graph does with
// each input. It warns of what such cases do not show.
func generatedCases(s *spec.Spec, m *onnx.Model, iface validators.Interface, scratch string) (cases.Set, error) {
	uses := m.Uses()
	draws := make(map[string]cases.Draw, len(iface.Inputs))
	for _, input := range iface.Inputs {
		draws[input.Name] = draw(input, uses[input.Name], s.Cases.Inputs[input.Name])
	}
	set, err := cases.Generate(s.Cases.Generate, uint64(s.Cases.Seed), iface, draws, scratch)
	if err != nil {
		return cases.Set{}, registry.Errorf(registry.CodeOf(err), "%s: %w", s.File, err)
	}
	if text := NoiseWarning(iface, uses); text != "" {
		set.Warnings = append(set.Warnings, "cases: "+text)
	}
	return set, nil
}

// draw says what the values of an input are drawn from.
func draw(input validators.TensorInfo, use onnx.Use, declared spec.Draw) cases.Draw {
	d := cases.Draw{Rows: use.Rows, Values: declared.Values}
	float := input.DType.Class() == tensor.ClassFloat
	switch {
	case declared.Min != nil && declared.Max != nil:
		d.Bounded, d.Min, d.Max = true, *declared.Min, *declared.Max
	case len(declared.Values) > 0:
	case use.Rows > 0 && !float:
		d.Bounded, d.Max = true, float64(use.Rows-1)
		if input.DType == tensor.Int8 || input.DType == tensor.Uint8 {
			d.Max = min(d.Max, 127)
		}
	case use.Mask:
		d.Mask = true
	case use.Image && float:
		d.Bounded, d.Max = true, 1
	case (use.Image || use.Quantized) && input.DType == tensor.Uint8:
		d.Bounded, d.Max = true, 255
	case use.Quantized && input.DType == tensor.Int8:
		d.Bounded, d.Min, d.Max = true, -128, 127
	}
	return d
}

// NoiseWarning says which inputs are images or tokens, of which random ones are not like any in use,
// and where sequences have a length of 1. It is empty where there are none.
func NoiseWarning(iface validators.Interface, uses map[string]onnx.Use) string {
	var noise, short []string
	for _, input := range iface.Inputs {
		switch use := uses[input.Name]; {
		case use.Image:
			noise = append(noise, fmt.Sprintf("pixels for %q", input.Name))
		case use.Rows > 0:
			noise = append(noise, fmt.Sprintf("token ids for %q", input.Name))
			if isShort(input, iface) {
				short = append(short, fmt.Sprintf("%q", input.Name))
			}
		}
	}
	if len(noise) == 0 {
		return ""
	}
	text := "random " + strings.Join(noise, ", ") + " are like no input in use, so they show little about accuracy"
	if len(short) > 0 {
		text += ", and all sequences of " + strings.Join(short, ", ") + " have one element (shapes: can give more)"
	}
	return text + ": record cases (docs/how-to/cases.md)"
}

// isShort reports whether every open dimension behind the batch is of size 1.
func isShort(input validators.TensorInfo, iface validators.Interface) bool {
	open := openAxes(input)
	return len(open) > 0 && !slices.ContainsFunc(open, func(axis int) bool { return iface.OptSize(input.Shape[axis]) > 1 })
}
