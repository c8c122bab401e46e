package printing

import (
	"fmt"

	"mlpromote.dev/mlpromote/cmd/internal/nodeverbs"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
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
