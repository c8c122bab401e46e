package policies

import (
	"slices"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

func keyCommand(a *program.App) *cobra.Command {
	return command.Group("key", "Make signing keys, or choose other signers", keyGenerate(a), keyUse(a), keyIdentity(a), keyTimestamps(a))
}

func keyGenerate(a *program.App) *cobra.Command {
	var role string
	generate := &cobra.Command{
		Use:   "generate",
		Short: "Create a signing key in cosign's format",
		Long: `Writes NAME.key, encrypted with COSIGN_PASSWORD (empty allowed), and NAME.pub into the
folder of keys. NAME is the role, or local for every role but attester and publisher. Signatures count only
once environments.yaml trusts the public key.`,
		Example: "  mlpromote key generate --role builder",
		Args:    command.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := checkRole(role); err != nil {
				return err
			}
			path, id, err := a.At().KeyFolder().New(evidence.Role(role))
			if err != nil {
				return err
			}
			return a.UI.Result(path, generatedKey{path, id})
		},
	}
	roleFlag(generate, &role)
	return generate
}

func keyUse(a *program.App) *cobra.Command {
	var role string
	use := &cobra.Command{
		Use:   "use URI",
		Short: "Sign with a key that a key management service or a hardware module has",
		Long: `Asks for the public key, and writes NAME.kms with the URI and NAME.pub into the folder of
keys. NAME is the role, or local for every role but attester and publisher. The key must be ECDSA P-256.

  awskms:///alias/NAME          AWS KMS
  gcpkms://projects/...         Google Cloud KMS
  azurekms://VAULT/KEY          Azure Key Vault
  hashivault://KEY, openbao://KEY
  NAME://...                    the plugin sigstore-kms-NAME on PATH, for other services and modules

Credentials come from the environment, as the tools of the services take them. A program that was
built without the provider of a service names the build tag that adds it.`,
		Example: "  mlpromote key use awskms:///alias/mlpromote-builder --role builder",
		Args:    command.Exactly("URI"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkRole(role); err != nil {
				return err
			}
			path, id, err := a.At().KeyFolder().Use(cmd.Context(), evidence.Role(role), args[0])
			if err != nil {
				return err
			}
			return a.UI.Result(path, generatedKey{path, id})
		},
	}
	roleFlag(use, &role)
	return use
}

func keyIdentity(a *program.App) *cobra.Command {
	var role string
	var identity wiring.Identity
	use := &cobra.Command{
		Use:   "identity",
		Short: "Sign with certificates for an identity, such as a CI job, and without a key",
		Long: `Writes NAME.identity into the folder of keys. NAME is the role, or local for every role but attester and publisher. To sign, a verb
makes a key that it forgets, gets a token, and asks the certificate authority (Fulcio) for a certificate for
both. The certificate is valid for minutes, so the folder also needs an authority for timestamps (key
timestamps), unless signatures are entered in a log (--rekor).

--identity-from names the source of tokens, and is never a token itself:

  github          GitHub Actions, of a job with permissions: {id-token: write}
  variable:NAME   a variable, such as from id_tokens in GitLab
  file:/PATH      a file, read each time, such as a Kubernetes service account's

A token must be for --audience alone. Every certificate, timestamp and log entry is verified by the roots of
environments.yaml before anything is stored.`,
		Example: "  mlpromote key identity --role builder --fulcio https://fulcio.example.com --identity-from github",
		Args:    command.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := checkRole(role); err != nil {
				return err
			}
			path, err := a.At().KeyFolder().UseIdentity(evidence.Role(role), identity)
			if err != nil {
				return err
			}
			return a.UI.Result(path, usedIdentity{path})
		},
	}
	roleFlag(use, &role)
	use.Flags().StringVar(&identity.Fulcio, "fulcio", "", "address of the certificate authority")
	use.Flags().StringVar(&identity.Token, "identity-from", "", "where tokens of the job come from: github, variable:NAME or file:/PATH")
	use.Flags().StringVar(&identity.Audience, "audience", "", "whom tokens are for (default: sigstore)")
	use.Flags().StringVar(&identity.Rekor, "rekor", "", "address of a log (Rekor version 1) in which signatures are entered (default: none)")
	return use
}

// usedIdentity is the file that describes how a role signs as an identity.
type usedIdentity struct {
	File string `json:"file"`
}

func keyTimestamps(a *program.App) *cobra.Command {
	return &cobra.Command{
		Use:   "timestamps URL",
		Short: "Give every signature a timestamp by an authority",
		Long: `Asks the authority at URL for a timestamp (RFC 3161), verifies it by the roots of environments.yaml,
and writes timestamps.yaml into the folder of keys. From then on every signature of a key in that folder
gets one, or is not made. URL has the path that takes requests.

Exit code 9: the authority did not answer. Exit code 5: roots does not vouch for its answer.`,
		Example: "  mlpromote key timestamps https://tsa.example.com/api/v1/timestamp",
		Args:    command.Exactly("URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := a.At().KeyFolder().UseTimestamps(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.UI.Result(path, usedTimestamps{path, args[0]})
		},
	}
}

// usedTimestamps is the file that names an authority for timestamps.
type usedTimestamps struct {
	File string `json:"file"`
	URL  string `json:"url"`
}

func roleFlag(cmd *cobra.Command, role *string) {
	cmd.Flags().StringVar(role, "role", "", "builder, verifier, approver, promoter, attester or publisher (default: one key for all but the last two)")
}

func checkRole(role string) error {
	if role != "" && !slices.Contains(evidence.KeyRoles(), evidence.Role(role)) {
		return registry.Errorf(registry.CodeInvalid, "--role %q: want one of %v", role, evidence.KeyRoles())
	}
	return nil
}

// generatedKey is a new key: the file of its public half, and what signatures call it.
type generatedKey struct {
	Public string `json:"public"`
	KeyID  string `json:"keyId"`
}
