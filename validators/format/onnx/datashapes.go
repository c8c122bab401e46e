package onnx

import "slices"

// dataShaped are the operators whose results have sizes that depend on values
// (onnx, docs/Operators.md).
var dataShaped = []string{"NonZero", "Compress", "NonMaxSuppression", "Unique"}

// ShapedByData returns an output that can have another shape for other values of the same inputs, and
// an operator of the graph that does that: one with a dimension that no input has, in a graph with
// such an operator. ok is false if there is none.
func (m *Model) ShapedByData() (output, op string, ok bool) {
	at := slices.IndexFunc(dataShaped, func(op string) bool { return m.Ops[DefaultDomain+"."+op] > 0 })
	if at < 0 {
		return "", "", false
	}
	var given []string
	for _, v := range m.Inputs {
		for _, d := range v.Shape {
			given = append(given, d.Param)
		}
	}
	for _, v := range m.Outputs {
		for _, d := range v.Shape {
			if !d.Known && (d.Param == "" || !slices.Contains(given, d.Param)) {
				return v.Name, dataShaped[at], true
			}
		}
	}
	return "", "", false
}
