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

// inCase is the error of a run, with the case in which it happened: case c of a shard. text is the
// library's. If an index is out of range, the error also has the input with that index.
func inCase(s *shard, c int64, e *engine, text string) error {
	text = strings.TrimPrefix(text, "Error running network: ")
	code, at := codeOf(text), fmt.Sprintf("case %d (row %d of %s)", s.first+int(c), c, s.name)
	if code == driverproc.BadInput {
		at += indexIn(e, text)
	}
	return driverproc.Errorf(code, "engine %s: %s: %s", e.id, at, text)
}

// indexIn returns the integer input that has the index of an error, or "" if not exactly one
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
		holders = fmt.Sprintf(": input %q holds %s, which is out of range", input.name, found[1])
	}
	return holders
}
