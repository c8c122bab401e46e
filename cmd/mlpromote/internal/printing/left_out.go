package printing

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/registry/evidence"
)

func LeftOutLabels(left []evidence.LeftOut) string {
	var all []string
	for _, l := range left {
		all = append(all, fmt.Sprintf("%s (%s)", l.Label, l.Code))
	}
	return strings.Join(all, ", ")
}
