//go:build cgo

package ort

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// outOfRange finds the index in the library's error about an index that is out of range.
var outOfRange = regexp.MustCompile(`(?:idx=|index = ?|index )(-?\d+)`)

// noHalf finds the operator in the library's error about a node that it does not compute in float16. It notices that when the node
// runs, so that an error is about one node.
var noHalf = regexp.MustCompile(`running (\w+) node\..*MLFloat16 data type is not supported`)

// failed is the error of a run. text is the library's. If an index is out of range, the error also has the
// input with that index.
func (e *engine) failed(text string) error {
	text = strings.TrimPrefix(text, "Error running network: ")
	failed := driverproc.Errorf(codeOf(text), "%s", text)
	if found := noHalf.FindStringSubmatch(text); found != nil {
		failed.Code, failed.Op, failed.DType = driverproc.UnsupportedOp, found[1], string(tensor.Float16)
	}
	if failed.Code == driverproc.BadInput {
		failed.Message = indexIn(e, text) + text
	}
	return failed
}

// indexIn says which integer input has the index of an error, in front of that, or is "" if not exactly one
// has it.
func indexIn(e *engine, text string) string {
	found := outOfRange.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	index, err := strconv.ParseFloat(found[1], 64)
	if err != nil || math.Abs(index) >= 1<<53 {
		return ""
	}
	holders := ""
	for i, input := range e.inputs {
		t := e.bound.fed(i, input.kind.dtype)
		if t.DType.Class() != tensor.ClassInteger || !slices.Contains(t.Float64s(), index) {
			continue
		}
		if holders != "" {
			return ""
		}
		holders = fmt.Sprintf("input %q holds %s, which is out of range: ", input.name, found[1])
	}
	return holders
}
