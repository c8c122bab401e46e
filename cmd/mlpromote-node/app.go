package main

import (
	"context"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/internal/nodeverbs"
	"mlpromote.dev/mlpromote/cmd/internal/suggest"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
)

// app is one run of the program: where it reads and writes, and its global flags.
type app struct {
	ui     *ui.UI
	getenv func(string) string

	connect.Flags
	output command.Output

	subject string // what the verb is about, for its error; empty: its first argument
}

func (a *app) root() *cobra.Command {
	root := command.Root(&cobra.Command{
		Use:   program,
		Short: "Download and verify the engine that fits this machine",
		Long: `mlpromote-node has the verbs of mlpromote for machines that run engines. They take the same
flags, print the same and end with the same exit codes. The registry is a service.

  mlpromote-node resolve MODEL --env prod
  mlpromote-node pull MODEL --env prod -o DIR
  mlpromote-node trust DIR --trust FILE
  mlpromote-node report DIR
  mlpromote-node describe`,
		Version:           version,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return a.configure(c) },
	}, a.ui, &a.output)
	a.Flags.Add(root, "")
	verbs := nodeverbs.Verbs{
		UI: a.ui, With: a.with, PolicyFolder: a.PolicyFolder, Now: now,
		Getenv:  func(name string) string { return a.getenv(name) },
		Subject: func(subject string) { a.subject = subject },
	}
	root.AddCommand(verbs.Resolve(), verbs.Pull(), verbs.Trust(), verbs.Describe(program), verbs.Report(program), command.Version(a.ui, version))
	return root
}

func (a *app) configure(c *cobra.Command) error {
	getenv, err := command.SecretFiles(a.getenv, "MLPROMOTE_TOKEN")
	if err != nil {
		return err
	}
	if a.getenv, err = a.UserFile(getenv); err != nil {
		return err
	}
	if err := a.output.Check(c); err != nil {
		return err
	}
	if err := a.Flags.Default(a.getenv); err != nil {
		return err
	}
	a.ui.JSON, a.ui.Verbose = a.output.Format == "json", a.output.Verbose
	return nil
}

// with runs a verb on the registry of the service that the flags name.
func (a *app) with(ctx context.Context, verb func(*connect.Registry) error) error {
	if a.Registry == "" {
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "no service is named: want --registry URL, or MLPROMOTE_REGISTRY"),
			"mlpromote, which is the larger program, opens data directories too")
	}
	r, _, err := connect.Service{
		URL: a.Registry, TLSCA: a.TLSCA, PolicyFolder: a.PolicyFolder(), Agent: program + "/" + version, Getenv: a.getenv, Note: a.ui.Note,
	}.Open(ctx)
	if err != nil {
		return err
	}
	return suggest.Around(ctx, r, func() error { return verb(r) })
}

// version is set by the linker.
var version = command.Unreleased

// program is what people type.
const program = "mlpromote-node"
