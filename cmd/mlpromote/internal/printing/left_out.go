package printing

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

func LeftOutLabels(left []registry.LeftOut) string {
	var all []string
	for _, l := range left {
		all = append(all, fmt.Sprintf("%s (%s)", l.Label, l.Code))
	}
	return strings.Join(all, ", ")
}
