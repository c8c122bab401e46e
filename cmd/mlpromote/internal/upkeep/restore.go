package upkeep

import (
	"context"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/snapshots"
	"mlpromote.dev/mlpromote/registry"
)

// Restore makes a data directory of a backup.
func (v Verbs) Restore() *cobra.Command {
	var name string
	var verify bool
	var since snapshots.Since
	c := &cobra.Command{
		Use:   "restore [SRC]",
		Short: "Restore a data directory from a backup",
		Long: `Restores the data directory, which must be empty or not exist, to its state when the snapshot
was made. Every digest and the chain of the history are checked before it is done. Broken
off, it is run again. Private keys are not in a backup: put them into DATA/keys after.
With --database the catalog goes into that, which must be empty: so a registry moves to PostgreSQL.

A backup knows nothing that happened after it: which engines were recalled, which keys and
tokens revoked, which models held. So a restore asks for a checkpoint that was signed later
(--checkpoint FILE), which counts the lost events, or for --lost-events-accepted. It lists
the facts that it cannot know, and writes the list into the history.

The restored catalog is another one than the original. Content in a bucket belongs to one
catalog: as long as that is the original, the restored one reads the bucket and changes
nothing there. When the original is gone for good, --take-over makes the restored catalog
the owner; without SRC, of a data directory that was restored or copied before. The original
cannot change the content any more then.
stdout: the name of the snapshot; without SRC, where the content is.`,
		Example: `  mlpromote restore /backup/mlpromote --data /srv/mlpromote --checkpoint newest.checkpoint
  mlpromote restore /backup/mlpromote --verify
  mlpromote restore --take-over --data /srv/mlpromote --storage s3://models --lost-events-accepted`,
		Args: func(c *cobra.Command, args []string) error {
			if v.TakeOver {
				return command.AtMost("SRC")(c, args)
			}
			return command.Exactly("SRC")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if verify && v.TakeOver {
				return registry.Errorf(registry.CodeInvalid, "--verify restores nothing, and --take-over is for a restored registry: want only one")
			}
			if len(args) == 0 {
				return v.takeOverContent(c.Context(), since)
			}
			return v.restore(c.Context(), args[0], name, verify, since)
		},
	}
	c.Flags().StringVar(&name, "snapshot", "", "which one (default the newest)")
	c.Flags().BoolVar(&verify, "verify", false, "check that it could be restored, and restore nothing")
	c.Flags().StringVar(&since.Checkpoint, "checkpoint", "", "file with a signed checkpoint of the history from after the snapshot")
	c.Flags().BoolVar(&since.Accepted, "lost-events-accepted", false, "restore although events after the snapshot are lost")
	c.Flags().BoolVar(&v.TakeOver, "take-over", false, "make the restored catalog the owner of its content; the original is gone for good")
	return c
}

func (v Verbs) restore(ctx context.Context, source, name string, verify bool, since snapshots.Since) error {
	restored, err := snapshots.Job{At: v.At(), UI: v.UI}.Restore(ctx, source, name, verify, since)
	if err != nil {
		return err
	}
	done := "restored"
	if verify {
		done = "can be restored"
	} else if keys, _ := filepath.Glob(filepath.Join(v.At().KeyDir(), "*.key")); len(keys) == 0 {
		v.UI.Note("there are no private keys in %s yet; without them nothing can be promoted", v.At().KeyDir())
	}
	v.UI.Note("%s: %s", done, inSnapshot(restored.Snapshot))
	v.noteLost(restored.Lost)
	return v.UI.Result(restored.Name, restored)
}

// noteLost lists what a restored registry cannot know.
func (v Verbs) noteLost(lost *snapshots.Lost) {
	if lost == nil {
		return
	}
	if lost.Events != nil {
		v.UI.Note("the checkpoint covers %s after the snapshot", registry.Count(*lost.Events, "event"))
	}
	v.UI.Note("what happened after %s is not known:", lost.After.Format(time.RFC3339))
	for _, what := range lost.Unknown {
		v.UI.Note("%s", what)
	}
}

// takeOverContent makes the catalog of a data directory the owner of its content.
func (v Verbs) takeOverContent(ctx context.Context, since snapshots.Since) error {
	taken, err := snapshots.Job{At: v.At(), UI: v.UI}.TakeOver(ctx, since)
	if err != nil {
		return err
	}
	v.noteLost(taken.Lost)
	return v.UI.Result(taken.Storage, taken)
}
