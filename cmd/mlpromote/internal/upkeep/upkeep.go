// Package upkeep has the verbs that look after the content of a data directory: gc and scrub.
package upkeep

import (
	"reflect"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry/gc"
)

// Verbs is what the verbs need.
type Verbs struct {
	UI *ui.UI
	// At says where the data directory is that the flags name.
	At func() wiring.Location
}

// Documents are the types of what the verbs print with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"gc":    {reflect.TypeFor[gc.Collected](), reflect.TypeFor[collection]()}, // the latter with --dry-run
		"scrub": {reflect.TypeFor[scrubResult]()},
	}
}
