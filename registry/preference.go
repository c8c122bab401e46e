package registry

import (
	"cmp"
	"slices"
)

// preference is one reason to prefer an engine over another.
type preference struct {
	compare func(a, b Engine) int // negative: a is better
	reason  string                // of the better one, after its label
}

// preferences lists the reasons in their order: the first in which two engines differ decides.
// The lowest precision comes before the toolchain, because every engine of a release is held to the
// limits of that release. The reasons say nothing of limits: where builds write, an engine may have failed them.
func preferences() []preference {
	return []preference{
		{
			func(a, b Engine) int { return cmp.Compare(b.Target.Specificity(), a.Target.Specificity()) },
			"matches this node more closely",
		},
		{
			func(a, b Engine) int { return cmp.Compare(precisionBits(a.Precision), precisionBits(b.Precision)) },
			"has a lower precision",
		},
		{
			func(a, b Engine) int { return cmp.Compare(originals(a.Precision), originals(b.Precision)) },
			"is compressed",
		},
		{
			func(a, b Engine) int { return CompareVersions(b.Toolchain.Version, a.Toolchain.Version) },
			"has the newer toolchain",
		},
		{
			func(a, b Engine) int { return cmp.Compare(a.Digest, b.Digest) },
			"is equally good and has the lower digest",
		},
	}
}

// RankEngines returns the engines that a node could run from best to worst. Resolve chooses the
// first without objections.
func RankEngines(engines []Engine) []Engine {
	sorted, order := slices.Clone(engines), preferences()
	slices.SortStableFunc(sorted, func(a, b Engine) int {
		for _, p := range order {
			if c := p.compare(a, b); c != 0 {
				return c
			}
		}
		return 0
	})
	return sorted
}

// WhyPreferred says why [RankEngines] has winner before loser.
func WhyPreferred(winner, loser Engine) string {
	var reason string
	for _, p := range preferences() {
		if reason = p.reason; p.compare(winner, loser) != 0 {
			break
		}
	}
	return winner.Label() + " " + reason
}

// originals is 0 for a precision of compressed engines and 1 for others.
func originals(precision string) int {
	if _, compressed := NumberFormat(precision); compressed {
		return 0
	}
	return 1
}

// unknownPrecision is more than the bits of any precision.
const unknownPrecision = 1000

// precisionBits returns the bit width of a precision. Unknown precisions sort last.
func precisionBits(precision string) int {
	numbers, _ := NumberFormat(precision)
	switch numbers {
	case "int4":
		return 4
	case "fp8", "int8":
		return 8
	case "fp16", "bf16":
		return 16
	case "fp32":
		return 32
	case "fp64":
		return 64
	}
	return unknownPrecision
}
