package auditing

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

// Verify checks the history.
func (v Verbs) Verify() *cobra.Command {
	var files []string
	var trust string
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check that no event of the history was changed, removed or added",
		Long: `Checks that
  - each event has the hash of the one before it,
  - the history extends every signed checkpoint that the registry keeps, and those in FILE,
  - every head is where the newest events put it,
  - events name every release with a tag in a protected environment and all evidence there,
    and the reports and quarantines that were attached elsewhere,
  - the catalog lists evidence in the order of the events,
  - restriction lists and trust bundles are those that the events name, each after the one before.
If a check fails, events were changed or deleted, or the catalog was changed without an event:
exit code 5, and the error names the place. Against a checkpoint that somebody kept elsewhere,
also a history that was made again from some event on is found: the error tells whether it was
truncated, rewritten, forked or replaced.

A FILE counts if a key signed it that is trusted as promoter for the whole registry.`,
		Example: "  mlpromote history verify\n  mlpromote history verify --checkpoint last-month.checkpoint --trust trust.yaml",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return v.With(c.Context(), func(i *wiring.Instance) error { return v.verify(c.Context(), i, files, trust) })
		},
	}
	c.Flags().StringArrayVar(&files, "checkpoint", nil, "file with a signed checkpoint that the history must extend; may be repeated")
	trustFlag(c, &trust)
	return c
}

func (v Verbs) verify(ctx context.Context, i *wiring.Instance, files []string, trust string) error {
	against, err := v.anchors(ctx, i, files, trust)
	if err != nil {
		return err
	}
	checked, err := against.check(ctx, i)
	if err != nil {
		return err
	}
	faults, err := i.HistoryFaults(ctx)
	for _, f := range faults {
		err = errors.Join(err, f.Err())
	}
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s, last %s", registry.Count(checked.Events, "event"), ui.Dash(string(checked.Last)))
	for _, c := range checked.Checkpoints {
		text += fmt.Sprintf("\nextends %s, a checkpoint of %s by key %s", ui.Plain(c.File), registry.Count(c.Size, "event"), c.Signer)
	}
	if checked.Kept > 0 {
		text += fmt.Sprintf("\nextends %s that the registry keeps", registry.Count(checked.Kept, "checkpoint"))
	}
	return v.UI.Result(text, checked)
}
