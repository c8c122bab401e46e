// Package integration has the verbs for CI systems, for deployments, and for a first look.
package integration

import (
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
)

// Verbs are the verbs of the package.
type Verbs struct{ *program.App }
