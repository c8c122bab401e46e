// Package diagnosis has the verbs that say why an engine differs from its reference model.
package diagnosis

import (
	"context"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
)

// Verbs is what the verbs need.
type Verbs struct {
	UI *ui.UI
	// With opens the registry that the flags name, runs verb on it and closes it.
	With func(ctx context.Context, verb func(*wiring.Instance) error) error
	// Reference reads the ref among the arguments of a verb, where a model is one of an environment unless that is
	// empty, or the ref of the last build.
	Reference func(i *wiring.Instance, verb, environment string, args []string) (registry.Ref, error)
	// Format is that of --output, once the command line was read.
	Format *string
	// Pipeline is one over an open registry, with what takes the place of installs.
	Pipeline func(i *wiring.Instance, own toolchains.Replacements) *run.Env
}
