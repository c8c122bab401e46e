//go:build cgo

package ort

import (
	"errors"
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

// inCase adds to an error of a run the case in which it happened: case c of a shard. If an
// index is out of range, it also adds the input with that index.
func inCase(s *shard, c int64, e *engine, err error) error {
	var failure *driverproc.Error
	if !errors.As(err, &failure) {
		return err
	}
	subject := "engine " + e.id
	text := strings.TrimPrefix(strings.TrimPrefix(failure.Message, subject+": "), "Error running network: ")
	at := fmt.Sprintf("case %d (row %d of %s)", s.first+int(c), c, s.name)
	if failure.Code == driverproc.BadInput {
		at += indexIn(e, text)
	}
	said := *failure
	said.Message = subject + ": " + at + ": " + text
	return &said
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
