// Package upkeep has the verbs that look after the content of a data directory: gc and scrub, backup and restore, and
// save and load, which carry a release to another one.
package upkeep

import (
	"context"
	"reflect"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/snapshots"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/gc"
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

// Documents are the types of what the verbs print with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"backup":  {reflect.TypeFor[snapshots.Saved]()},
		"load":    {reflect.TypeFor[snapshots.LoadedRelease]()},
		"restore": {reflect.TypeFor[snapshots.Restored](), reflect.TypeFor[snapshots.TakenOver]()}, // the latter with --take-over
		"save":    {reflect.TypeFor[snapshots.SavedRelease]()},
		"gc":      {reflect.TypeFor[gc.Collected](), reflect.TypeFor[collection]()}, // the latter with --dry-run
		"scrub":   {reflect.TypeFor[scrubResult]()},
	}
}
