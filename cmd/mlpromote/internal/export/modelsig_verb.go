package export

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/oci"
)

// WrittenSignature is what export model-signature wrote.
type WrittenSignature struct {
	File   string   `json:"file"`
	Ref    string   `json:"ref"` // of the engine
	Signer string   `json:"signer"`
	Files  []string `json:"files"` // that it covers
}

// ModelSignature signs the files of a pulled folder for OpenSSF Model Signing.
func (v Verbs) ModelSignature() *cobra.Command {
	var file, role, trust string
	var want pull.Expectation
	c := &cobra.Command{
		Use:   "model-signature DIR -o FILE",
		Short: "Sign the files of a pulled folder as OpenSSF Model Signing has it",
		Long: `Checks a folder that pull made as mlpromote trust DIR does, and signs its files: an in-toto
statement by OpenSSF Model Signing 1.0 in a sigstore bundle, which model_signing verify key reads. The
signature covers the engine's files, and not .mlpromote, which has what pull keeps. FILE must be outside
DIR, where mlpromote trust would refuse it. An engine that is in quarantine, is restricted or failed a
verification is not signed (exit code 4). A later quarantine does not change the file.`,
		Example: "  mlpromote export model-signature ./digits -o model.sig",
		Args:    command.Exactly("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			if file == "" {
				return registry.Errorf(registry.CodeInvalid, "export model-signature: want -o FILE")
			}
			if r := evidence.Role(role); r != evidence.RolePromoter && r != evidence.RoleBuilder {
				return registry.Errorf(registry.CodeInvalid, "--role %.40q: want promoter or builder", role)
			}
			if err := outside(args[0], file); err != nil {
				return err
			}
			proof, err := v.checkFolder(c.Context(), args[0], connect.Trust{File: trust, PolicyFolder: v.At().PolicyFolder()}, want)
			if err != nil {
				return err
			}
			with, err := v.At().Keyring().Signer(c.Context(), evidence.Role(role))
			if err != nil {
				return err
			}
			bundle, err := ModelSignature(c.Context(), args[0], proof, with)
			if err != nil {
				return err
			}
			if err := Write(file, append(bundle, '\n')); err != nil {
				return err
			}
			done := WrittenSignature{File: file, Ref: proof.Record.Ref, Signer: with.KeyID(), Files: []string{}}
			for _, f := range proof.Files {
				done.Files = append(done.Files, f.Path)
			}
			return v.UI.Result(fmt.Sprintf("%s: %s of %s, signed by %s", ui.Plain(file),
				registry.Count(len(done.Files), "file"), ui.Plain(done.Ref), done.Signer), done)
		},
	}
	c.Flags().StringVarP(&file, "out", "o", "", "file to write")
	c.Flags().StringVar(&role, "role", string(evidence.RolePromoter), "role of the signing key: promoter or builder")
	c.Flags().StringVar(&trust, "trust", "", "file with the registry: and trust: to judge by (default: the data directory's)")
	c.Flags().StringVar(&want.Environment, "env", "", "environment that it must be from")
	c.Flags().StringVar(&want.Model, "model", "", "model that it must be of")
	c.Flags().StringVar(&want.Version, "version", "", "version that it must be")
	return c
}

// checkFolder checks a pulled folder as mlpromote trust does.
func (v Verbs) checkFolder(ctx context.Context, dir string, trust connect.Trust, want pull.Expectation) (pull.Proof, error) {
	trust.Now = clock.Now
	trust, err := trust.Recall(ctx)
	if err == nil {
		err = trust.Expired() // nothing new is signed by it
	}
	if err != nil {
		return pull.Proof{}, err
	}
	verify, err := trust.Verify()
	if err != nil {
		return pull.Proof{}, err
	}
	want.Known = trust.KnownRestrictions
	if want.Registry, err = trust.RegistryName(); err != nil {
		return pull.Proof{}, err
	}
	return pull.Checker{Verify: verify, ReadPart: oci.ReadPart, Now: clock.Now}.Check(ctx, dir, want)
}

// outside refuses a file in the folder that it is about.
func outside(dir, file string) error {
	folder, err := filepath.Abs(dir)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "%s: %w", dir, err)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
	}
	if below, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(below) {
		return registry.Errorf(registry.CodeInvalid, "-o %s: want a file outside %s, where mlpromote trust refuses what pull did not write", file, dir)
	}
	return nil
}
