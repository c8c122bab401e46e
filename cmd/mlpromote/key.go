package main

import (
	"slices"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/registry"
)

func (a *app) keyCommand() *cobra.Command {
	var role string
	generate := &cobra.Command{
		Use:   "generate",
		Short: "Create a signing key in cosign's format",
		Long: `Writes NAME.key, encrypted with COSIGN_PASSWORD (empty allowed), and NAME.pub into the
folder of keys. NAME is the role, or local for a key that has every role. Signatures count only
once environments.yaml trusts the public key.`,
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
