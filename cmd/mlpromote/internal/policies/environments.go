package policies

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/validators"
)

func environmentsCommand(a *program.App) *cobra.Command {
	return command.Group("environments", "Check environments.yaml", environmentsCheckCommand(a))
}

func environmentsCheckCommand(a *program.App) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "check",
		Short: "Print the rules in environments.yaml, and find mistakes in them",
		Long: `Reads environments.yaml and the public keys that it names, and prints the environments,
their requirements, and the trusted keys. It then looks for mistakes in a well-formed file:
a trusted key with a missing file, a requirement that no trusted key can
meet, a promoter's key in this directory that the file does not trust. It also warns if
environments.yaml was deleted after the registry had begun to work with it.

stdout: two tables. Exit code 2: the file cannot be read, or has a mistake.`,
		Example: "  mlpromote environments check --file environments.new.yaml",
		Args:    command.Exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return checkEnvironments(c.Context(), a, file) },
	}
	c.Flags().StringVar(&file, "file", "", "file to check as if it were environments.yaml: paths of keys start at the place of environments.yaml")
	return c
}

func checkEnvironments(ctx context.Context, a *program.App, file string) error {
	files, err := a.At().SignedFiles(ctx, a.At().Keyring())
	if err != nil && !registry.HasCode(err, registry.CodeUnavailable) { // a wrong password says nothing about the file
		a.UI.Note("the key that signs promotions is not checked: %v", err)
	}
	files.File = file
	s, err := files.Read()
	if err != nil {
		return err
	}
	checked := checkedEnvironments{Environments: s.Environments, Findings: s.Findings(clock.Now())}
	for _, e := range s.Environments.List {
		if e.Accuracy == nil {
			continue
		}
		if err := validators.CheckRequirement(*e.Accuracy); err != nil {
			checked.Findings = append(checked.Findings, config.Finding{Problem: true, Text: "nothing can be promoted to " + e.Name + ": " + err.Error()})
		}
	}
	checked.Signers = signersOf(s)
	if err := a.UI.Result(checked.text(), checked); err != nil {
		return err
	}
	return errors.Join(append(problems(a, checked.Findings), stillThere(ctx, a, files, s))...)
}

// stillThere refuses the default in place of an environments.yaml that the catalog of the data
// directory has agreed on.
func stillThere(ctx context.Context, a *program.App, files config.Files, s config.Snapshot) error {
	if files.File != "" || !a.At().HasDatabaseFile() && a.Database == "" {
		return nil
	}
	return config.CheckPresent(ctx, s, func(ctx context.Context) (history.Configuration, error) {
		db, err := a.At().OpenDatabase(ctx)
		if err != nil {
			return history.Configuration{}, err
		}
		agreed, err := db.Agreed(ctx, history.Configuration{})
		return agreed, errors.Join(err, db.Close())
	})
}

// checkedEnvironments is what a check of environments.yaml prints.
type checkedEnvironments struct {
	policy.Environments
	Signers  []checkedSigner  `json:"signers"`
	Findings []config.Finding `json:"findings,omitempty"`
}

func (c checkedEnvironments) text() string {
	rows := [][]string{{"ENVIRONMENT", "FROM", "ASKS FOR", "CONTENT"}}
	for _, e := range c.List {
		content := "with the catalog"
		if e.External() {
			content = e.Registry
		}
		rows = append(rows, []string{e.Name, ui.Dash(e.From), ui.Dash(asksFor(e)), content})
	}
	return ui.Table(rows) + "\n" + signerTable(c.Signers)
}

// asksFor lists what an environment requires.
func asksFor(e policy.Environment) string {
	all := slices.Clone(e.Require)
	if e.Accuracy != nil {
		all = append(all, e.Accuracy.String())
	}
	for _, precision := range slices.Sorted(maps.Keys(e.Ceilings)) {
		all = append(all, "ceilings of "+precision)
	}
	if e.CIJob != nil {
		all = append(all, e.CIJob.String())
	}
	if e.Approvals.Count > 0 {
		all = append(all, e.Approvals.String())
	}
	if rule := e.Reports; !rule.IsZero() {
		text := "reports of " + registry.Count(max(1, rule.Verifiers), "verifier")
		if rule.Cases > 0 {
			text += fmt.Sprintf(" on %s or more", registry.Count(rule.Cases, "case"))
		}
		if rule.Rare > 0 {
			text += fmt.Sprintf(", with repeated runs for a difference in one of %d requests", rule.Rare)
		}
		if rule.MaxAge > 0 {
			text += fmt.Sprintf(", at most %v old", rule.MaxAge)
		}
		all = append(all, text)
	}
	if !e.Served.IsZero() {
		all = append(all, "passes through "+e.Served.String())
	}
	if !e.Coverage.IsZero() {
		all = append(all, e.Coverage.String())
	}
	if len(e.BreakGlass) > 0 {
		all = append(all, "break-glass may skip "+strings.Join(e.BreakGlass, " and "))
	}
	for _, f := range e.Freeze {
		all = append(all, "freeze "+f.String())
	}
	return strings.Join(all, ", ")
}

// problems makes errors of the findings that are problems, and notes of the others.
func problems(a *program.App, findings []config.Finding) []error {
	var all []error
	for _, f := range findings {
		if !f.Problem {
			a.UI.Note("%s", f.Text)
			continue
		}
		err := registry.Errorf(registry.CodeInvalid, "%s", f.Text)
		if f.Fix != "" {
			err = registry.WithHint(err, "%s", f.Fix)
		}
		all = append(all, err)
	}
	return all
}
