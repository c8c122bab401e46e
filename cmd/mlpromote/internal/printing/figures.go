// Package printing writes limits, load profiles, names and figures as several groups of verbs print them.
package printing

import (
	"fmt"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// Cell returns a figure in a format for float64, such as "%.3f".
func Cell(f evidence.Figure, format string) string { return fmt.Sprintf(format, float64(f)) }

// Percent returns a share of 1 in percent: "99.50 %".
func Percent(fraction float64) string { return fmt.Sprintf("%.2f %%", 100*fraction) }

// Duration returns nanoseconds in the unit that fits: "1.20 s", "3.40 ms" or "56 us".
func Duration(ns int64) string {
	switch {
	case ns >= 1e9:
		return fmt.Sprintf("%.2f s", float64(ns)/1e9)
	case ns >= 1e6:
		return fmt.Sprintf("%.2f ms", float64(ns)/1e6)
	default:
		return fmt.Sprintf("%.0f us", float64(ns)/1e3)
	}
}
