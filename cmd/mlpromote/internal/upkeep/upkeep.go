// Package upkeep has the verbs that look after the content of a data directory: gc and scrub, backup and restore, and
// save and load, which carry a release to another one.
package upkeep

import (
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
)

// Verbs are the verbs of the package.
type Verbs struct{ *program.App }
