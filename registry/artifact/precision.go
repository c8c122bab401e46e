package artifact

import (
	"slices"
	"strings"
)

// compressedSuffix ends the precision of an engine that computes another function than its reference model.
const compressedSuffix = "-compressed"

// CompressedPrecision returns the precision of an engine with these numbers ("fp32", "int8") that was made from a model which is
// smaller than the reference model: pruned, factorized or distilled. Limits, ceilings and comparisons of releases treat it as a
// precision of its own, since it computes another function.
func CompressedPrecision(numbers string) string { return numbers + compressedSuffix }

// NumberFormat returns the format of the numbers from a precision, and whether the engine is compressed: "fp32" and true from
// "fp32-compressed".
func NumberFormat(precision string) (numbers string, compressed bool) {
	return strings.CutSuffix(precision, compressedSuffix)
}

// KnownPrecision reports whether limits can be for a precision.
func KnownPrecision(precision string) bool {
	numbers, _ := NumberFormat(precision)
	return slices.Contains([]string{"int4", "int8", "fp8", "fp16", "bf16", "fp32", "fp64"}, numbers)
}
