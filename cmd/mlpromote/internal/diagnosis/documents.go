package diagnosis

import (
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
)

// Commands returns the commands that explain why an engine differs from its reference.
func Commands(a *program.App) []*cobra.Command {
	v := Verbs{a}
	return []*cobra.Command{v.Bisect(), v.Replay(), v.Profile(), v.Readiness()}
}

// Documents returns the types that each command prints with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"bisect":    {reflect.TypeFor[bisected]()},
		"profile":   {reflect.TypeFor[profiled]()},
		"readiness": {reflect.TypeFor[checklist]()},
		"replay":    {reflect.TypeFor[replayed]()},
	}
}
