package validators

import (
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// Batch returns the symbol along which cases are put together: the one that leads all inputs and outputs, and is nowhere else. Where
// there is none it says why, with the first input or output that has another dimension in front.
func (i Interface) Batch() (symbol, missing string) {
	first := ""
	for n, t := range slices.Concat(i.Inputs, i.Outputs) {
		what := "output"
		if n < len(i.Inputs) {
			what = "input"
		}
		what += fmt.Sprintf(" %q", registry.PlainText(t.Name))
		switch {
		case len(t.Shape) == 0:
			return "", what + " has no dimensions"
		case t.Shape[0].Symbol == "":
			return "", fmt.Sprintf("%s has the fixed size %d in front", what, t.Shape[0].Size)
		case n > 0 && t.Shape[0].Symbol != symbol:
			return "", fmt.Sprintf("%s has %q in front, and %s has %q", first, registry.PlainText(symbol), what, registry.PlainText(t.Shape[0].Symbol))
		}
		first, symbol = what, t.Shape[0].Symbol
		if slices.ContainsFunc(t.Shape[1:], func(d Dim) bool { return d.Symbol == symbol }) {
			return "", fmt.Sprintf("%s has %q in front and once more", what, registry.PlainText(symbol))
		}
	}
	return symbol, ""
}

// NoBatches says that batches of cases are not checked, and why: there is no dimension for them, or it has no room for two cases.
// It is empty where they are.
func (i Interface) NoBatches() string {
	symbol, missing := i.Batch()
	switch {
	case missing != "":
		return "batches are not checked, since no dimension leads all inputs and outputs: " + missing
	case i.Dims[symbol].Max < 2:
		return fmt.Sprintf("batches are not checked, since the largest size of %q is %d", registry.PlainText(symbol), i.Dims[symbol].Max)
	}
	return ""
}
