package validators

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// looseRate is the share of equal answers below which a limit says next to nothing.
const looseRate = 0.5

// Loose names limits on equal answers that an engine keeps whose answers are mostly others, and that no preset gives for so many
// cases. It is empty where there are none.
func (l Limits) Loose(cases int) string {
	var found []string
	for _, precision := range slices.Sorted(maps.Keys(l.Precisions)) {
		t, _ := tolerancesOf(precision)
		proven := ProvableRate(t.rate, t.usual, cases) // of few cases: see Few
		outputs := l.Precisions[precision].Outputs
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			for _, limit := range []struct {
				figure string
				*AtLeast
			}{{"top1", outputs[name].Top1}, {"equal", outputs[name].Equal}, {"close", outputs[name].Close}} {
				if limit.AtLeast != nil && limit.Min < looseRate && limit.Min != proven {
					found = append(found, fmt.Sprintf("%s of output %q in %s is %s", limit.figure, name, precision, share(limit.Min)))
				}
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return strings.Join(found, ", ") + ": an engine passes most of whose answers are others than the reference's"
}
