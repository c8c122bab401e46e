package serving

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
)

// Disagreement returns the differences between the server's description of a model and its interface, or "". It skips inputs and outputs if the
// server describes none.
func (c Config) Disagreement(told About) string {
	var all []string
	add := func(kind string, values []caserun.Slot, described []Told) {
		if described == nil {
			return
		}
		for _, v := range values {
			at := slices.IndexFunc(described, func(d Told) bool { return d.Name == v.Name })
			if at < 0 {
				all = append(all, fmt.Sprintf("it has no %s %q", kind, v.Name))
				continue
			}
			if d := described[at]; d.Datatype != datatype(v) || !sameShape(v.Shape, d.Shape) {
				all = append(all, fmt.Sprintf("its %s %q is %s %v: the model has %s %v", kind, v.Name, d.Datatype, d.Shape, datatype(v), v.Shape))
			}
		}
	}
	add("input", c.Inputs, told.Inputs)
	add("output", c.Outputs, told.Outputs)
	for _, in := range told.Inputs {
		if _, ok := c.input(in.Name); !ok {
			all = append(all, fmt.Sprintf("it wants an input %q, which the model does not have", in.Name))
		}
	}
	if len(told.Versions) > 1 {
		all = append(all, fmt.Sprintf("it has the versions %s of the model ready, and only one is the engine", strings.Join(told.Versions, ", ")))
	}
	return strings.Join(all, "; ")
}

// sameShape reports whether two shapes can be of one tensor. -1 is any size.
func sameShape(a, b []int64) bool {
	return slices.EqualFunc(a, b, func(x, y int64) bool { return x == y || x < 0 || y < 0 })
}
