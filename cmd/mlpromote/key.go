package main

import (
	"slices"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

func (a *app) keyCommand() *cobra.Command {
	var role string
	generate := &cobra.Command{
		Use:   "generate",
		Short: "Create a signing key in cosign's format",
		Long: `Writes NAME.key, encrypted with COSIGN_PASSWORD (empty allowed), and NAME.pub into the
folder of keys. NAME is the role, or local for a key that plays every role. Trust in it is
given in environments.yaml.`,
		Example: "  mlpromote key generate --role builder",
		Args:    command.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			if role != "" && !slices.Contains(registry.Roles(), registry.Role(role)) {
				return registry.Errorf(registry.CodeInvalid, "--role %q: want one of %v", role, registry.Roles())
			}
			path, id, err := a.at().NewKey(registry.Role(role))
			if err != nil {
				return err
			}
			return a.ui.Result(path, generatedKey{path, id})
		},
	}
	generate.Flags().StringVar(&role, "role", "", "builder, verifier, approver or promoter (default: one key for all)")
	return command.Group("key", "Make signing keys", generate)
}

// generatedKey is a new key: the file of its public half, and what signatures call it.
type generatedKey struct {
	Public string `json:"public"`
	KeyID  string `json:"keyId"`
}

// reindexed is how many manifests were read.
type reindexed struct {
	Manifests int `json:"manifests"`
}

func (a *app) reindexCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reindex",
		Short: "Rebuild the tables that are derived from manifests and history",
		Long: `Empties the tables that repeat what manifests say (who refers to whom, artifact types)
and fills them again from the stored bytes. Tags, heads, holds and history are facts and stay.`,
		Example: "  mlpromote reindex",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.with(c.Context(), func(i *wiring.Instance) error {
				if i.Local == nil {
					return registry.Errorf(registry.CodeInvalid, "reindex works on a data directory: stop the service, then --data DIR")
				}
				n, err := i.Local.Reindex(c.Context())
				if err != nil {
					return err
				}
				return a.ui.Result(registry.Count(n, "manifest"), reindexed{n})
			})
		},
	}
}
