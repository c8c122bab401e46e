// Package upkeep has the verbs that look after the content of a data directory: gc and scrub, backup and restore, and
// save and load, which carry a release to another one.
package upkeep

import (
	"context"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

// Verbs is what the verbs need.
type Verbs struct {
	UI *ui.UI
	// At says where the data directory is that the flags name.
	At func() wiring.Location
	// With opens the registry that the flags name, runs verb on it and closes it.
	With func(ctx context.Context, verb func(*wiring.Instance) error) error
	// Reference reads the ref among arguments, or that of the last build.
	Reference func(i *wiring.Instance, args []string) (registry.Ref, error)
	TakeOver  *bool // --take-over, which At knows of
}
