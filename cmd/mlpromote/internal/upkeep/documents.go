package upkeep

import (
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/snapshots"
	"mlpromote.dev/mlpromote/registry/gc"
)

// Commands returns the commands that look after the content of a data directory.
func Commands(a *program.App) []*cobra.Command {
	v := Verbs{a}
	return []*cobra.Command{v.GC(), v.Scrub(), v.Save(), v.Load(), v.Backup(), v.Restore()}
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
