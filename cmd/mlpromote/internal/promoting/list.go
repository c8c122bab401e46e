package promoting

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/approver"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
)

func listCommand(a *program.App) *cobra.Command {
	var environment, model string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the heads of all environments",
		Long:    "Lists the heads, with holds and quarantines. --output json has whole digests; mlpromote quarantine list has all quarantines.",
		Example: "  mlpromote list --env prod",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				heads, err := i.Heads(c.Context(), environment, model)
				if err != nil {
					return err
				}
				if len(heads) == 0 && i.Local == nil {
					a.UI.Note("no heads: the service has none, or this token may read none of them")
				}
				if err := i.Agreed(c.Context()); err != nil { // what is listed is so all the same
					a.UI.Note("warning: %v", err)
				}
				quarantines := quarantinesOf(c.Context(), a, i, heads)
				header := []string{"ENVIRONMENT", "MODEL", "VERSION", "SINCE", "HOLD", "DIGEST"}
				quarantined := slices.ContainsFunc(quarantines, func(text string) bool { return text != "-" })
				if quarantined {
					header = append(header, "QUARANTINE")
				}
				rows := [][]string{header}
				for n, h := range heads {
					row := []string{h.Environment, h.Model, h.Version, h.Since.UTC().Format("2006-01-02 15:04"), ui.Dash(h.Hold), ui.Short(h.Release)}
					if quarantined {
						row = append(row, quarantines[n])
					}
					rows = append(rows, row)
					if h.BreakGlass != "" {
						a.UI.Note("%s in %s is at %s by %s", h.Model, h.Environment, h.Version, h.BreakGlass)
					}
				}
				return a.UI.Result(ui.Table(rows), program.Listed(heads))
			})
		},
	}
	c.Flags().StringVar(&environment, "env", "", "only this environment")
	c.Flags().StringVar(&model, "model", "", "only this model")
	return c
}

// mostLooked is how many heads are looked at for quarantines: each costs a read of its evidence.
const mostLooked = 100

// quarantinesOf returns the subjects of each head that are in quarantine, "-" for none and "?" if that is not known.
func quarantinesOf(ctx context.Context, a *program.App, i *wiring.Instance, heads []history.Head) []string {
	texts := make([]string, len(heads))
	var looking errgroup.Group
	looking.SetLimit(8)
	q := approver.Quarantiner{Registry: i}
	for n, h := range heads {
		if texts[n] = "?"; n >= mostLooked {
			continue
		}
		looking.Go(func() error {
			found, err := q.OfRelease(ctx, h.Environment, h.Model, h.Release)
			if err != nil {
				return nil //nolint:nilerr // the head is there all the same
			}
			var subjects []string
			for _, f := range found {
				if !slices.Contains(subjects, f.Label) {
					subjects = append(subjects, f.Label)
				}
			}
			texts[n] = ui.Dash(strings.Join(subjects, ", "))
			return nil
		})
	}
	_ = looking.Wait() // they return none
	if more := len(heads) - mostLooked; more > 0 {
		a.UI.Note("quarantines of %s are not shown: --env or --model lists fewer", registry.Count(more, "head"))
	}
	return texts
}
