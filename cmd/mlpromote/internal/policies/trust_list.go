package policies

import (
	"slices"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/policyfile"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
)

func trustListCommand(a *program.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List who is trusted to sign what",
		Long: `Lists the trust entries of environments.yaml with the identifier of each key, its state and since
when, its window, its roles and resources. stderr lists mistakes in entries, such as a key if its file
is missing; mlpromote environments check judges the whole file.`,
		Example: "  mlpromote trust list",
		Args:    command.Exactly(),
		RunE:    func(*cobra.Command, []string) error { return listTrust(a) },
	}
}

// listedTrust is what trust list prints.
type listedTrust struct {
	Signers  []checkedSigner  `json:"signers"`
	Findings []config.Finding `json:"findings,omitempty"`
}

func listTrust(a *program.App) error {
	if a.Registry != "" {
		return registry.Errorf(registry.CodeInvalid, "trust list reads environments.yaml here, and not the file of --registry %s", a.Registry)
	}
	s, err := policyfile.Files(a.At()).Read()
	if err != nil {
		return err
	}
	listed := listedTrust{Signers: signersOf(s), Findings: s.TrustFindings(clock.Now())}
	if slices.ContainsFunc(s.Environments.Trust, timed) {
		a.UI.Note("times are judged by a trusted timestamp, or else by when the history recorded a statement; " +
			"in a pulled folder without a timestamp they are only claimed")
	}
	for _, f := range listed.Findings {
		a.UI.Warn(f.Text)
	}
	return a.UI.Result(signerTable(listed.Signers), listed)
}
