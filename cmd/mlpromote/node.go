package main

import (
	"context"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/internal/nodeverbs"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
)

// nodeVerbs are the verbs that mlpromote-node has too.
func (a *app) nodeVerbs() nodeverbs.Verbs {
	return nodeverbs.Verbs{
		UI: a.ui,
		With: func(ctx context.Context, verb func(*connect.Registry) error) error {
			return a.with(ctx, func(i *wiring.Instance) error { return verb(&i.Registry) })
		},
		PolicyFolder: a.PolicyFolder,
		Now:          clock.Now,
		Getenv:       func(name string) string { return a.getenv(name) },
		Subject:      func(subject string) { a.subject = subject },
	}
}

func (a *app) nodeCommand() *cobra.Command {
	return command.Group("node", "Describe this machine, report its engine, and list what nodes reported",
		a.nodeVerbs().Describe("mlpromote node"), a.nodeVerbs().Report("mlpromote node"), a.nodeListCommand())
}
