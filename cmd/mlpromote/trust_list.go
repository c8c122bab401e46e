package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/nodeverbs"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/policyfile"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
)

func (a *app) trustListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List who is trusted to sign what",
		Long: `Lists the trust entries of environments.yaml with the identifier of each key, its state and since
when, its window, its roles and resources. stderr lists mistakes in entries, such as a key if its file
is missing; mlpromote environments check judges the whole file.`,
		Example: "  mlpromote trust list",
		Args:    command.Exactly(),
		RunE:    func(*cobra.Command, []string) error { return a.listTrust() },
	}
}

// listedTrust is what trust list prints.
type listedTrust struct {
	Signers  []checkedSigner  `json:"signers"`
	Findings []config.Finding `json:"findings,omitempty"`
}

func (a *app) listTrust() error {
	if a.Registry != "" {
		return registry.Errorf(registry.CodeInvalid, "trust list reads environments.yaml here, and not the file of --registry %s", a.Registry)
	}
	s, err := policyfile.Files(a.at()).Read()
	if err != nil {
		return err
	}
	listed := listedTrust{Signers: signersOf(s), Findings: s.TrustFindings(clock.Now())}
	if slices.ContainsFunc(s.Environments.Trust, timed) {
		a.ui.Note("times are judged by a trusted timestamp, or else by when the history recorded a statement; " +
			"in a pulled folder without a timestamp they are only claimed")
	}
	for _, f := range listed.Findings {
		a.ui.Warn(f.Text)
	}
	return a.ui.Result(signerTable(listed.Signers), listed)
}

// timed reports whether the time of a statement decides whether it counts.
func timed(e registry.TrustEntry) bool {
	return e.EffectiveState() == registry.KeyRetired || !e.Window.IsZero()
}

// signersOf are the trust entries with the identifiers of their keys.
func signersOf(s config.Snapshot) []checkedSigner {
	signers := []checkedSigner{}
	for _, e := range s.Environments.Trust {
		signers = append(signers, checkedSigner{e, s.KeyID(e)})
	}
	return signers
}

func signerTable(signers []checkedSigner) string {
	rows := [][]string{{"SIGNER", "KEY", "STATE", "ROLES", "RESOURCES", "NODE TYPES"}}
	for _, s := range signers {
		rows = append(rows, []string{s.String(), ui.Dash(shortKey(s.KeyID)), keyState(s.TrustEntry),
			nodeverbs.RoleNames(s.Roles), strings.Join(s.Resources, ", "), ui.Dash(strings.Join(s.NodeTypes, ", "))})
	}
	return ui.Table(rows)
}
