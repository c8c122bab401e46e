package building

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/registry"
)

func toolchainCheckCommand(a *program.App) *cobra.Command {
	var set map[string]string
	c := &cobra.Command{
		Use:   "check MANIFEST",
		Short: "Check that the compiler and the runner of a manifest keep the driver protocol",
		Long: `Compiles a small model with the compiler that the manifest names, and runs the engine with its runner: right outputs, the
same bytes again, batches, timings, and a refusal of whatever they do not know. Each check is a promise of the driver protocol
(docs/reference/driver.md). The exit code is 3 if one is not kept.`,
		Example: "  mlpromote toolchain check toolchains/acc.yaml\n  mlpromote toolchain check toolchains/acc.yaml --set accelerator.vendor=acme --set accelerator.arch=a1",
		Args:    command.Exactly("MANIFEST"),
		RunE:    func(c *cobra.Command, args []string) error { return checkToolchain(c.Context(), a, args[0], set) },
	}
	c.Flags().StringToStringVar(&set, "set", nil, "FIELD=VALUE: a field of the target to compile for, as in tied_to")
	return c
}

func checkToolchain(ctx context.Context, a *program.App, manifest string, set map[string]string) error {
	var text strings.Builder
	failed, kept := 0, 0
	all, err := a.Toolchains().CheckManifest(ctx, manifest, set, func(c toolchains.Checked) {
		a.UI.Note("%s: %s", c.Check, c.Result)
		switch c.Result {
		case toolchains.CheckFails:
			failed++
		case toolchains.CheckOK:
			kept++
		}
	})
	if err != nil {
		return err
	}
	for i, c := range all {
		if i > 0 {
			text.WriteByte('\n')
		}
		fmt.Fprintf(&text, "%-8s %s: %s", c.Result, c.Check, c.Promise)
		if c.Detail != "" {
			fmt.Fprintf(&text, "\n         %s", c.Detail)
		}
	}
	if err := a.UI.Result(text.String(), program.Listed(all)); err != nil {
		return err
	}
	if failed > 0 {
		return registry.Errorf(registry.CodeLimit, "%s keeps %d of %s: see docs/reference/driver.md", manifest, kept, registry.Count(kept+failed, "promise"))
	}
	return nil
}
