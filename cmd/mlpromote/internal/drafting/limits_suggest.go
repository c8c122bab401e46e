package drafting

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/pipeline/tune"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

func limitsCommand(a *program.App) *cobra.Command {
	return command.Group("limits", "Suggest limits for a spec", limitsSuggestCommand(a))
}

func limitsSuggestCommand(a *program.App) *cobra.Command {
	var file, cases string
	var own toolchains.Replacements
	c := &cobra.Command{
		Use:   "suggest --cases FOLDER",
		Short: "Suggest limits by running the engines on cases that the verdict never uses",
		Long: `Makes the engines of the spec for the targets that this machine meets, runs them on the cases in
FOLDER, and prints limits that they keep with a margin, which is larger the fewer these cases are, as a part of a spec. FOLDER is in the folder
of the spec and has the form of a folder of cases. No case of it may be in the cases of the
spec: limits that follow from the cases that they are judged on prove nothing.

No limit of an output is looser than the preset default. An engine that fails one is left out with all
its figures; a warning names it, the limits of the others are printed, and the exit code is 3.

The limits describe these engines, and not how good an engine must be: read them before you use them.`,
		Example: "  mlpromote limits suggest --cases more-cases/",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if cases == "" {
				return command.Usage(c, fmt.Errorf("--cases: want a folder of cases that the spec does not name"))
			}
			if err := own.Check(); err != nil {
				return err
			}
			return suggestLimits(c.Context(), a, file, cases, own)
		},
	}
	program.SpecFlag(c, &file)
	own.Add(c)
	c.Flags().StringVar(&cases, "cases", "", "folder of other cases, relative to the folder of the spec")
	return c
}

// suggestedLimits is what limits suggest prints.
type suggestedLimits struct {
	validators.Suggestion
	YAML string `json:"yaml"` // a part of a spec
}

func suggestLimits(ctx context.Context, a *program.App, file, cases string, own toolchains.Replacements) error {
	s, env, err := a.LocalSpec(file, own)
	if err != nil {
		return err
	}
	suggested, err := tune.SuggestLimits(ctx, env, s, cases)
	if err != nil {
		return err
	}
	return printSuggested(a, suggested)
}

// printSuggested prints a suggestion, and fails if engines are left out.
func printSuggested(a *program.App, suggested validators.Suggestion) error {
	head := fmt.Sprintf("# From %s on %s that the verdict does not use. Errors have a margin of at least half, and a larger one if these are few; "+
		"rates are as high as the verdict's %d cases can prove.\n",
		registry.Count(suggested.Reports, "engine"), registry.Count(suggested.Cases, "case"), suggested.Verdict)
	for _, l := range suggested.LeftOut {
		a.UI.Warn(fmt.Sprintf("%s is left out: %s", l.Engine, l.Message))
	}
	if err := a.UI.Result(head+suggested.YAML(), suggestedLimits{suggested, suggested.YAML()}); err != nil || len(suggested.LeftOut) == 0 {
		return err
	}
	return registry.WithHint(registry.Errorf(registry.CodeLimit, "engines that fail default limits are left out of the suggestion"),
		"correct these engines, or set a looser limit by hand if it is good enough")
}
