package policies

import (
	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/policyfile"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/registry/evidence"
)

func trustRetireCommand(a *program.App) *cobra.Command {
	return trustStateCommand(a, policyfile.StateChange{State: evidence.KeyRetired}, &cobra.Command{
		Use:   "retire KEY",
		Short: "Let a key that was replaced sign nothing new",
		Long: `Sets the state retired in every entry of the key in environments.yaml. Earlier records still
count, later ones do not. Statements against a release always count.`,
		Example: "  mlpromote trust retire keys/old-builder.pub",
	})
}

func trustRevokeCommand(a *program.App) *cobra.Command {
	return trustStateCommand(a, policyfile.StateChange{State: evidence.KeyRevoked}, &cobra.Command{
		Use:   "revoke KEY",
		Short: "Let nothing count that a stolen key signed",
		Long: `Sets the state revoked in every entry of the key in environments.yaml. Its signatures in favor
of a release no longer count, whenever they were made. Its signatures against a release, such as a failed
report, still counts.`,
		Example: "  mlpromote trust revoke keys/builder.pub --dry-run",
	})
}

func trustStateCommand(a *program.App, n policyfile.StateChange, c *cobra.Command) *cobra.Command {
	c.Long += `
Keep the entry and the file of the key. KEY is the path that the file has for it, a file with
the public key, or the first 8 or more digits of its identifier.

stdout: the changed lines, evidence that no longer counts, and the heads with
otherwise. --dry-run changes nothing.`
	c.Args = command.Exactly("KEY")
	c.RunE = func(c *cobra.Command, args []string) error {
		n.Key = args[0]
		return changeTrust(c.Context(), a, n.DryRun, n.Propose)
	}
	c.Flags().StringVar(&n.Since, "since", "", "time from which, such as 2026-11-21T09:00:00Z (default: now)")
	c.Flags().BoolVar(&n.DryRun, "dry-run", false, "show what would change, and change nothing")
	return c
}
