package printing

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// LeftOutLabels returns the labels of checks that were left out, each with the code of its reason: "labels (no_labels), ...".
func LeftOutLabels(left []evidence.LeftOut) string {
	var all []string
	for _, l := range left {
		all = append(all, fmt.Sprintf("%s (%s)", l.Label, l.Code))
	}
	return strings.Join(all, ", ")
}
