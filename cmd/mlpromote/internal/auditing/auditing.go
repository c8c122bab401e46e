// Package auditing has the verbs that check the history and prove to others what it is.
package auditing

import (
	"context"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
)

// Verbs are the verbs below history that need all of it, and those of trust bundles.
type Verbs struct {
	UI *ui.UI
	// With opens the registry that the flags name, runs verb on it and closes it.
	With func(ctx context.Context, verb func(*wiring.Instance) error) error
	// PolicyFolder has environments.yaml, which says whom this machine trusts.
	PolicyFolder func() string
}
