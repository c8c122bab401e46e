// Package building has the verbs that make engines from a spec, and those for toolchains and finished steps: plan, build,
// assemble, tune, toolchain, cache.
package building

import (
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
)

// Commands returns the commands that plan, build and tune engines, and look after the toolchains for that.
func Commands(a *program.App) []*cobra.Command {
	return []*cobra.Command{
		planCommand(a), buildCommand(a), assembleCommand(a), tuneCommand(a), toolchainCommand(a), cacheCommand(a), driverCommand(a),
	}
}

// Documents returns the types that each command prints with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"assemble":          {reflect.TypeFor[assembledRelease]()},
		"build":             {reflect.TypeFor[builtRelease]()},
		"cache list":        {reflect.TypeFor[[]toolchains.Kept]()},
		"cache prune":       {reflect.TypeFor[prunedSteps]()},
		"plan":              {reflect.TypeFor[planned]()},
		"toolchain install": {reflect.TypeFor[toolchains.Found]()},
		"toolchain list":    {reflect.TypeFor[[]toolchains.Status]()},
		"toolchain check":   {reflect.TypeFor[[]toolchains.Checked]()},
		"toolchain remove":  {reflect.TypeFor[[]toolchains.Found]()},
		"tune":              {reflect.TypeFor[tuned]()},
	}
}
