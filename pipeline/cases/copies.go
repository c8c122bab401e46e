package cases

import (
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// manyCopies is the share of copies that is worth a warning.
const manyCopies = 0.01

// FindCopies notes the cases that have the inputs of an earlier one: each proves nothing new. Many are a warning.
func (cs *Set) FindCopies(iface validators.Interface) error {
	known := make(map[rowSum]bool, cs.Record.Count)
	cs.Copies = make(map[int]bool)
	err := cs.sums(cs.Files, iface, func(number int, sum rowSum) {
		if known[sum] {
			cs.Copies[number] = true
		}
		known[sum] = true
	})
	if n := len(cs.Copies); float64(n) > manyCopies*float64(cs.Record.Count) {
		cs.Warnings = append(cs.Warnings, fmt.Sprintf("cases: %d of %s have the inputs of an earlier one and count for no limit on a rate: remove them",
			n, registry.Count(cs.Record.Count, "case")))
	}
	return err
}

// Distinct is how many cases have inputs of their own.
func (cs *Set) Distinct() int { return cs.Record.Count - len(cs.Copies) }
