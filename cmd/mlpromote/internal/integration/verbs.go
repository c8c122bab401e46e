// Package integration has the verbs for CI systems, for deployments, and for a first look.
package integration

import (
	"context"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

// Verbs is what the verbs need.
type Verbs struct {
	UI      *ui.UI
	Version string // of the program
	// With opens the registry that the flags name, runs verb on it and closes it.
	With func(ctx context.Context, verb func(*wiring.Instance) error) error
	// Reference reads the ref among arguments, or that of the last build.
	Reference func(i *wiring.Instance, args []string) (registry.Ref, error)
	Getenv    func(name string) string
	// LoadSpec reads a spec.
	LoadSpec func(file string) (*spec.Spec, error)
	Secrets  []string // variables whose values are secrets
}
