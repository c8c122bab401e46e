// Package printing writes limits, load profiles, names and figures as several groups of verbs print them.
package printing

import (
	"fmt"

	"mlpromote.dev/mlpromote/registry/evidence"
)

func Cell(f evidence.Figure, format string) string { return fmt.Sprintf(format, float64(f)) }

func Percent(fraction float64) string { return fmt.Sprintf("%.2f %%", 100*fraction) }

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
