package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/ui"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/environments"
)

func (a *app) environmentsCommand() *cobra.Command {
	return group("environments", "Check environments.yaml, and make a change of it hold for all replicas", a.environmentsCheckCommand(), a.environmentsSchemaCommand(), a.environmentsStatusCommand(), a.environmentsAdoptCommand())
}

func (a *app) environmentsCheckCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "check",
		Short: "Print the rules in environments.yaml, and find mistakes in them",
		Long: `Reads environments.yaml and the public keys that it names, and prints the environments,
what each requires, and which keys are trusted. It then looks for mistakes in a file whose
form is right: a trusted key whose file is missing, a requirement that no trusted key can
meet, a promoter's key in this directory that the file does not trust. It also says if
environments.yaml was deleted after the registry had begun to work with it.

stdout: two tables. Exit code 2: the file cannot be read, or has a mistake.`,
		Example: "  mlpromote environments check --file environments.new.yaml",
		Args:    exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return a.checkEnvironments(c.Context(), file) },
	}
	c.Flags().StringVar(&file, "file", "", "file to check as if it were environments.yaml: paths of keys start where that is")
	return c
}

func (a *app) checkEnvironments(ctx context.Context, file string) error {
	files, err := a.signedFiles(ctx, a.keyring())
	if err != nil && !registry.HasCode(err, registry.CodeUnavailable) { // a wrong password says nothing about the file
		a.ui.Note("the key that signs promotions is not checked: %v", err)
	}
	files.File = file
	s, err := files.Read()
	if err != nil {
		return err
	}
	checked := checkedEnvironments{Environments: s.Environments, Findings: s.Findings(now())}
	for _, e := range s.Environments.Trust {
		checked.Signers = append(checked.Signers, checkedSigner{e, s.KeyID(e)})
	}
	if err := a.ui.Result(checked.text(), checked); err != nil {
		return err
	}
	return errors.Join(append(a.problems(checked.Findings), a.stillThere(ctx, files, s))...)
}

// stillThere refuses the default in place of an environments.yaml that the catalog of the data
// directory has agreed on.
func (a *app) stillThere(ctx context.Context, files config.Files, s config.Snapshot) error {
	if _, err := os.Stat(filepath.Join(a.data, datadir.DatabaseFile)); files.File != "" || err != nil && a.database == "" {
		return nil
	}
	return config.CheckPresent(ctx, s, func(ctx context.Context) (registry.Configuration, error) {
		db, err := a.openDatabase(ctx)
		if err != nil {
			return registry.Configuration{}, err
		}
		agreed, err := db.Agreed(ctx, registry.Configuration{})
		return agreed, errors.Join(err, db.Close())
	})
}

func (a *app) environmentsSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of environments.yaml",
		Long: `Prints the JSON Schema of environments.yaml, as this program reads it. Put it beside the file, where
the first line of the file points editors to it:

  # yaml-language-server: $schema=` + environments.SchemaFile,
		Example: "  mlpromote environments schema > .mlpromote/" + environments.SchemaFile,
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.ui.Stdout.Write(environments.Schema())
			return err
		},
	}
}

// checkedEnvironments is what a check of environments.yaml prints.
type checkedEnvironments struct {
	registry.Environments
	Signers  []checkedSigner  `json:"signers"`
	Findings []config.Finding `json:"findings,omitempty"`
}

// checkedSigner is a trust entry with the identifier of its key; empty without a file.
type checkedSigner struct {
	registry.TrustEntry
	KeyID string `json:"keyId,omitempty"`
}

func (c checkedEnvironments) text() string {
	rows := [][]string{{"ENVIRONMENT", "FROM", "ASKS FOR", "CONTENT"}}
	for _, e := range c.List {
		content := "with the catalog"
		if e.External() {
			content = e.Registry
		}
		rows = append(rows, []string{e.Name, ui.Dash(e.From), ui.Dash(strings.Join(e.Require, ", ")), content})
	}
	signers := [][]string{{"SIGNER", "KEY", "STATE", "ROLES", "RESOURCES", "NODE TYPES"}}
	for _, s := range c.Signers {
		signers = append(signers, []string{s.String(), ui.Dash(shortKey(s.KeyID)), keyState(s.TrustEntry), roleNames(s.Roles), strings.Join(s.Resources, ", "), ui.Dash(strings.Join(s.NodeTypes, ", "))})
	}
	return ui.Table(rows) + "\n" + ui.Table(signers)
}

func shortKey(id string) string { return id[:min(len(id), 12)] }

func keyState(e registry.TrustEntry) string {
	switch e.State {
	case registry.KeyRetired:
		return "retired " + e.RetiredAt.Format("2006-01-02T15:04:05Z")
	case registry.KeyRevoked:
		return "revoked " + e.RevokedAt.Format("2006-01-02T15:04:05Z")
	}
	return string(registry.KeyTrusted)
}

func roleNames(roles []registry.Role) string {
	var names []string
	for _, r := range roles {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

func (a *app) environmentsStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say whether a service works by what was agreed on, and what waits for being adopted",
		Long: `Asks the replica that answers at --registry how its environments.yaml, public keys,
access.yaml and promoter's key stand to those that all replicas agreed on. agreed: they
are the same. pending: its files changed, and wait for environments adopt. unreadable: its
files have a mistake, and what was agreed on is still in force. differs: it has other files,
and changes and resolves nothing.`,
		Example: "  mlpromote environments status --registry http://127.0.0.1:5080",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if a.registry == "" {
				return registry.Errorf(registry.CodeInvalid, "environments status asks a service: want --registry URL")
			}
			return a.with(c.Context(), func(i *instance) error {
				status, err := i.configuration.Configuration(c.Context())
				if err != nil {
					return err
				}
				return a.ui.Result(configurationText(status), status)
			})
		},
	}
}

func configurationText(s registry.ConfigurationStatus) string {
	rows := [][]string{{"PART", "AGREED", "IN FORCE", "ON DISK"}}
	inForce, onDisk := s.InForce.Parts(), s.OnDisk.Parts()
	for i, p := range s.Agreed.Parts() {
		rows = append(rows, []string{p.Name, ui.Dash(ui.Short(p.Digest)), ui.Dash(ui.Short(inForce[i].Digest)), ui.Dash(ui.Short(onDisk[i].Digest))})
	}
	lines := append([]string{string(s.State), ui.Table(rows)}, s.Changes...)
	if s.Problem != "" {
		lines = append(lines, s.Problem)
	}
	return strings.Join(lines, "\n")
}

func (a *app) environmentsAdoptCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "adopt",
		Short: "Make the files that are here those that all replicas must have",
		Long: `Replicas on one PostgreSQL database must have the same environments.yaml, public keys,
access.yaml and promoter's key. A change of them waits until it is adopted: with --database,
that of the files here; with --registry, that of the files of the service, which takes an
administrator. Replicas that have other files then change and resolve nothing until they
get them. A catalog in a file needs no adopting: its service, and the verbs on its
directory, take a change by themselves.

stdout: what is agreed on now.`,
		Example: "  mlpromote environments adopt",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if a.registry != "" {
				return a.with(c.Context(), func(i *instance) error { return a.adoptThere(c.Context(), i) })
			}
			return a.adoptHere(c.Context())
		},
	}
}

// adoptHere records the files of the data directory as those that are agreed on.
func (a *app) adoptHere(ctx context.Context) (err error) {
	if _, err := os.Stat(a.data); errors.Is(err, fs.ErrNotExist) {
		return noData(a.data)
	}
	own, err := a.ownConfiguration(ctx)
	if err != nil {
		return err
	}
	db, err := a.openDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	agreed, err := db.Agreed(ctx, registry.Configuration{Environments: own.Environments})
	if err != nil {
		return err
	}
	nothing := digest.FromBytes(nil)
	switch {
	case agreed.Access == "": // no service was here yet: it records by itself what it has
		own = registry.Configuration{Environments: own.Environments}
	case own.Access == nothing && agreed.Access != nothing:
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "the services of this catalog have an %s, and %s has none", config.AccessFile, a.policyFolder()),
			"put their %s here; to agree on none, take it from a service and adopt with --registry URL", config.AccessFile)
	}
	differs := own.Differs(agreed)
	if len(differs) == 0 {
		a.ui.Note("nothing to do: what is here is agreed on")
		return a.adopted(agreed)
	}
	change, err := registry.Reconfigure(agreed, own, "adopted by whoever has the database: "+strings.Join(differs, ", "), now())
	if err != nil {
		return err
	}
	if _, err := db.Apply(ctx, change); err != nil {
		return err
	}
	a.ui.Note("adopted: %s", strings.Join(differs, ", "))
	return a.adopted(own.Over(agreed))
}

// adoptThere lets a service adopt what its files say, after showing what that changes.
func (a *app) adoptThere(ctx context.Context, i *instance) error {
	status, err := i.configuration.Configuration(ctx)
	if err != nil {
		return err
	}
	if status.Problem != "" {
		return registry.Errorf(registry.CodeInvalid, "the files of the service cannot be used: %s", status.Problem)
	}
	for _, change := range status.Changes {
		a.ui.Note("%s", change)
	}
	if len(status.OnDisk.Differs(status.Agreed)) == 0 {
		a.ui.Note("nothing to do: what the service has is agreed on")
		return a.adopted(status.Agreed)
	}
	if status, err = i.configuration.AdoptConfiguration(ctx, status.OnDisk); err != nil {
		return err
	}
	return a.adopted(status.Agreed)
}

// ownConfiguration is the configuration of the files here, with the promoter's key where
// there is one.
func (a *app) ownConfiguration(ctx context.Context) (registry.Configuration, error) {
	files, err := a.signedFiles(ctx, a.keyring())
	if err != nil && !registry.HasCode(err, registry.CodeUnavailable) {
		return registry.Configuration{}, err
	}
	s, err := files.Read()
	return s.Configuration, err
}

func (a *app) adopted(agreed registry.Configuration) error {
	var lines []string
	for _, p := range agreed.Parts() {
		if p.Digest != "" {
			lines = append(lines, fmt.Sprintf("%-12s  %s", p.Name, p.Digest))
		}
	}
	return a.ui.Result(strings.Join(lines, "\n"), agreed)
}
