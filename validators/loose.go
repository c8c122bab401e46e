package validators

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry/figure"
)

// looseRate is the share of equal answers below which a limit says next to nothing.
const looseRate = 0.5

// Loose names limits on equal answers that an engine keeps whose answers are mostly others, and that no preset gives for so many
// cases. It is empty where there are none.
func (l Limits) Loose(cases int) string {
	var found []string
	for _, precision := range slices.Sorted(maps.Keys(l.Precisions)) {
		outputs := l.Precisions[precision].Outputs
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			for _, row := range figure.OfOutputs() {
				d := rateOf(row, limitedAs(precision))
				limit, there := outputs[name].Bound(row)
				if row.Rate && there && limit < looseRate && limit != ProvableRate(d.limit, d.usual, cases) { // of few cases: see Few
					found = append(found, fmt.Sprintf("%s of output %q in %s is %s", row.Key, name, precision, share(limit)))
				}
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return strings.Join(found, ", ") + ": an engine passes most of whose answers are others than the reference's"
}
