package export

import (
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
)

// Verbs are the verbs below export.
type Verbs struct {
	UI *ui.UI
	// At says where the registry is that the flags name, with keys and policy.
	At func() wiring.Location
}
