package printing

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/validators"
)

// Names describes the names of classes and features.
func Names(all []inspection.Names) string {
	text := ""
	for _, n := range all {
		what, of := "classes ", n.Output
		if n.Input != "" {
			what, of = "features", n.Input
		}
		names := strings.Join(n.First, ", ")
		if n.Count > len(n.First) {
			names += ", ..."
		}
		text += fmt.Sprintf("%s %s: %d: %s\n", what, ui.Plain(of), n.Count, ui.Plain(names))
	}
	return text
}

// shownNames is how many names of an input or output are shown.
const shownNames = 5

// NamesOf returns the names of an interface.
func NamesOf(iface validators.Interface) []inspection.Names {
	var all []inspection.Names
	for _, t := range iface.Inputs {
		if n := len(t.Names); n > 0 {
			all = append(all, inspection.Names{Input: t.Name, Count: n, First: t.Names[:min(n, shownNames)]})
		}
	}
	for _, t := range iface.Outputs {
		if n := len(t.Names); n > 0 {
			all = append(all, inspection.Names{Output: t.Name, Count: n, First: t.Names[:min(n, shownNames)]})
		}
	}
	return all
}
