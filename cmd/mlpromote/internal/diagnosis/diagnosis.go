// Package diagnosis has the verbs that explain why an engine differs from its reference model.
package diagnosis

import (
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
)

// Verbs are the verbs of the package.
type Verbs struct{ *program.App }
