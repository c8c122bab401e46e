package upkeep

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/snapshots"
	"mlpromote.dev/mlpromote/registry"
)

// Backup copies a data directory.
func (v Verbs) Backup() *cobra.Command {
	var keep int
	var verify bool
	c := &cobra.Command{
		Use:   "backup DEST",
		Short: "Back up the data directory, also while a service uses it",
		Long: `Adds a snapshot of the data directory to DEST: the catalog at one instant (names, heads,
holds, history, tokens), the content that it names, environments.yaml and other files that the
operator wrote. Content is copied once for all snapshots; each run reads a tenth of the copies
again, and --verify all of them, and copies damaged files again. Private keys are not saved: keep
those where you keep secrets. DEST itself is one, for it has the secrets of webhooks.
stdout: the name of the snapshot, which counts from then on.`,
		Example: "  mlpromote backup /backup/mlpromote --data /srv/mlpromote --keep 14\n  mlpromote restore /backup/mlpromote --verify",
		Args:    command.Exactly("DEST"),
		RunE: func(c *cobra.Command, args []string) error {
			if keep < 0 {
				return registry.Errorf(registry.CodeInvalid, "--keep %d: want the number of snapshots to keep, or 0 for all", keep)
			}
			return v.backup(c.Context(), args[0], keep, verify)
		},
	}
	c.Flags().BoolVar(&verify, "verify", false, "read all copies again, not a tenth of them")
	c.Flags().IntVar(&keep, "keep", 7, "snapshots to keep in DEST, this one included; 0: all")
	return c
}

func (v Verbs) backup(ctx context.Context, dest string, keep int, verify bool) error {
	saved, err := snapshots.Job{At: v.At(), UI: v.UI}.Backup(ctx, dest, keep, verify)
	if err != nil {
		return err
	}
	return errors.Join(v.saved(saved), saved.Damaged())
}

// saved says what was saved, and what of earlier snapshots was repaired.
func (v Verbs) saved(s snapshots.Saved) error {
	v.UI.Note("saved %s; private keys are not in it", inSnapshot(s.Snapshot))
	if n := len(s.Checked.Repaired); n > 0 {
		v.UI.Note("%s of earlier snapshots damaged, and copied again now: look at the disk of the backup", registry.Count(n, "copy", "copies"))
	}
	return v.UI.Result(s.Name, s)
}

// inSnapshot says what is in a snapshot.
func inSnapshot(s snapshots.Snapshot) string {
	return fmt.Sprintf("%s, %s, %s with %s, %s", registry.Count(s.Heads, "head"), registry.Count(s.Events, "event"),
		registry.Count(s.Blobs, "blob"), ui.Size(s.Bytes), registry.Count(len(s.Files), "file"))
}
