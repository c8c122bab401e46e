package policies

import (
	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/export"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

// exportedSummary is what trust export wrote.
type exportedSummary struct {
	File string `json:"file"`
	Form string `json:"form"` // "dsse" or "bundle"
	export.Summary
}

func trustExportCommand(a *program.App) *cobra.Command {
	var environment, file, keyID string
	var dsse bool
	c := &cobra.Command{
		Use:   "export [REF | MODEL [--env ENV]] -o FILE",
		Short: "Write the verification summary of a promoted release to a file",
		Long: `Writes the statement with which the promoter allowed a release in an environment: a SLSA
verification summary (VSA), bound to the release, its engines and the environment. With --dsse it
is a bare DSSE envelope, which slsa-verifier verify-vsa reads, else the sigstore bundle. The signature
is the promoter's own. A release that may not be used there now is refused (exit code 4). A
quarantine that comes later does not change the file.`,
		Example: "  mlpromote trust export vision/digits --env prod --dsse -o vsa.json",
		Args:    command.AtMost("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			if file == "" {
				return registry.Errorf(registry.CodeInvalid, "trust export: want -o FILE")
			}
			if keyID != "" && !dsse {
				return registry.Errorf(registry.CodeInvalid, "trust export --key-id: want --dsse too: a sigstore bundle has no key ID")
			}
			return a.With(c.Context(), func(i *wiring.Instance) error {
				ref, err := a.ModelOrReference(c.Context(), i, "trust export", environment, args)
				if err != nil {
					return err
				}
				s, err := export.SummaryOf(c.Context(), &i.Registry, ref)
				if err != nil {
					return err
				}
				done, data := exportedSummary{file, "bundle", s}, s.SigstoreBundle()
				if dsse {
					done.Form = "dsse"
					if data, err = s.DSSE(keyID); err != nil {
						return err
					}
				}
				if err := export.Write(file, data); err != nil {
					return err
				}
				return a.UI.Result(exportedText(done), done)
			})
		},
	}
	c.Flags().StringVar(&environment, "env", "", "environment, if a model is given in place of a ref")
	c.Flags().StringVarP(&file, "out", "o", "", "file to write")
	c.Flags().BoolVar(&dsse, "dsse", false, "write a bare DSSE envelope")
	c.Flags().StringVar(&keyID, "key-id", "", "name of the key in the envelope, for verifiers that ask for one")
	return c
}

// exportedText says what a verifier has to be asked for.
func exportedText(e exportedSummary) string {
	text := ""
	for _, row := range [][2]string{{"file", e.File}, {"signer", e.Signer}, {"verifier", e.VerifierID}, {"resource", e.ResourceURI}} {
		text += row[0] + "  " + ui.Plain(row[1]) + "\n"
	}
	for _, level := range e.Levels {
		text += "level  " + ui.Plain(level) + "\n"
	}
	for _, s := range e.Subjects {
		text += "subject  " + ui.Plain(string(s.Digest.SHA256())) + "\n"
	}
	return text
}
