package export

import (
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
)

// Verbs are the verbs of the package.
type Verbs struct{ *program.App }
