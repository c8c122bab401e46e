package policies

import (
	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/policyfile"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
)

func trustAddCommand(a *program.App) *cobra.Command {
	var n policyfile.Addition
	c := &cobra.Command{
		Use:   "add KEY --role ROLE",
		Short: "Trust a public key in a role",
		Long: `Adds an entry to trust: in environments.yaml, and keeps its comments and order. KEY is the file
of a public key (PEM). Unless it is in the policy folder already, it is copied to keys/NAME.pub
there. Without environments.yaml, the default is written first; its entry for keys/local.pub is
left out if there is no such key.

Give a key that expires --until: later signatures do not count, except for statements
against a release. What shows the time is a trusted timestamp, or else the history.

Roles: builder, verifier, approver, promoter. A key with the role attester, with which a service
signs for people who signed in, has no other role, and neither has a publisher's. Without --env, the entry is for all
environments.
A key that is retired or revoked is not trusted again: make a new one.

stdout: the changed lines, new trust, and the heads with another decision.`,
		Example: `  mlpromote trust add builder.pub --role builder
  mlpromote trust add ana.pub --role approver --env prod`,
		Args: command.Exactly("KEY"),
		RunE: func(c *cobra.Command, args []string) error {
			n.Key = args[0]
			return changeTrust(c.Context(), a, false, n.Propose)
		},
	}
	c.Flags().StringArrayVar(&n.Roles, "role", nil, "role that the key may sign as; repeatable")
	c.Flags().StringArrayVar(&n.Envs, "env", nil, "environment in which it may; repeatable (default: all)")
	c.Flags().StringVar(&n.From, "from", "", "time before which nothing counts that the key signs, such as 2026-11-21T09:00:00Z")
	c.Flags().StringVar(&n.Until, "until", "", "time from which nothing counts that the key signs")
	c.Flags().StringVar(&n.Name, "name", "", "name of the copy of the key, without .pub (default: the file's)")
	command.Required(c, "role")
	return c
}
