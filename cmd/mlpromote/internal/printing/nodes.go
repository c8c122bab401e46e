package printing

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/nodeverbs"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// NodeLines has a line for each report.
func NodeLines(indent string, reports []storage.NodeReport) []string {
	var lines []string
	shared := storage.SharedNames(reports)
	for _, r := range reports {
		line := indent + nodeverbs.NodeText(r)
		if n := shared[r.NodeName()]; n > 0 {
			line += fmt.Sprintf("; %d machines or callers report by this name", n)
		}
		lines = append(lines, ui.Plain(line))
	}
	return lines
}

// NodesGet lists what node types get of a release; without any, the order in which nodes get its engines.
func NodesGet(r artifact.Release, all []artifact.NodeEngine) string {
	var items []string
	for _, n := range all {
		items = append(items, n.String())
	}
	if len(all) > 0 {
		return ui.Paragraph("nodes get: "+strings.Join(items, ", "), "  ")
	}
	for _, e := range r.Ranked() {
		items = append(items, e.Label())
	}
	return ui.Paragraph("nodes get the first that they can run: "+strings.Join(items, ", "), "  ")
}
