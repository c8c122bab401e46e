// Package auditing has the verbs that check the history and prove to others what it is.
package auditing

import (
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
)

// Verbs are the verbs of the package.
type Verbs struct{ *program.App }
