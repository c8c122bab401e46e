package evidence

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// String describes it in one line of at most [registry.MaxText] bytes: what, who and why.
func (s Skipped) String() string {
	return registry.PlainText(fmt.Sprintf("break-glass: skips %s; approved by %s: %s", strings.Join(s.Requirements, ", "),
		strings.Join(s.Approvers, ", "), strings.Join(s.Comments, "; ")))
}
