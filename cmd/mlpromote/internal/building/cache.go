package building

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

func cacheCommand(a *program.App) *cobra.Command {
	list := &cobra.Command{
		Use:     "list",
		Short:   "List the cached build steps on this machine, most recently used first",
		Example: "  mlpromote cache list",
		Args:    command.Exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return listSteps(c.Context(), a) },
	}
	var most string
	prune := &cobra.Command{
		Use:   "prune",
		Short: "Remove the least recently used build steps, and leftovers of crashes",
		Long: `Removes finished steps from this machine, the one that was not used for longest first,
until the others fit. build does this with MLPROMOTE_CACHE_SIZE. A step that is gone is done
again when it is needed. Nothing is removed that a build is reading or writing.`,
		Example: "  mlpromote cache prune --max-size 0",
		Args:    command.Exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return pruneSteps(c.Context(), a, most) },
	}
	prune.Flags().StringVar(&most, "max-size", "",
		"size that the others may take, such as 5GiB; 0 removes all (default MLPROMOTE_CACHE_SIZE, else "+toolchains.DefaultCacheSize+")")
	return command.Group("cache", "List and remove finished steps of builds", list, prune)
}

func listSteps(ctx context.Context, a *program.App) error {
	m, err := a.Toolchains().OpenLocal()
	if err != nil {
		return err
	}
	all, err := m.List(ctx)
	if err != nil {
		return err
	}
	return a.UI.Result(stepsText(all), nonNil(all))
}

func pruneSteps(ctx context.Context, a *program.App, most string) error {
	m, err := a.Toolchains().OpenLocal()
	if err != nil {
		return err
	}
	var bytes *int64
	if most != "" {
		size, err := spec.ParseSize(most)
		if err != nil {
			return registry.Errorf(registry.CodeInvalid, "--max-size: %w", err)
		}
		bytes = new(int64(size))
	}
	removed, left, err := m.Prune(ctx, bytes)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("removed %s, the others take %s", registry.Count(len(removed), "step"), ui.Size(left))
	return a.UI.Result(text, prunedSteps{nonNil(removed), left})
}

// prunedSteps is what cache prune removed.
type prunedSteps struct {
	Removed []toolchains.Kept `json:"removed"`
	Left    int64             `json:"left"` // bytes
}

func nonNil(kept []toolchains.Kept) []toolchains.Kept { return append([]toolchains.Kept{}, kept...) }

func stepsText(all []toolchains.Kept) string {
	rows := [][]string{{"STEP", "VERB", "TOOLCHAIN", "SIZE", "LAST USED", "FROM"}}
	for _, k := range all {
		rows = append(rows, []string{ui.Short(k.Key), string(k.Verb), k.Tool, ui.Size(k.Size),
			k.Used.Format(time.DateTime), cmp.Or(strings.TrimPrefix(k.Origin.Cache, "oci://"), "-")})
	}
	return ui.Table(rows)
}
