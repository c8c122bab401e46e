package program

import (
	"context"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/internal/nodeverbs"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
)

// NodeVerbs are the verbs that mlpromote-node has too.
func (a *App) NodeVerbs() nodeverbs.Verbs {
	return nodeverbs.Verbs{
		UI: a.UI,
		With: func(ctx context.Context, verb func(*connect.Registry) error) error {
			return a.With(ctx, func(i *wiring.Instance) error { return verb(&i.Registry) })
		},
		PolicyFolder: a.PolicyFolder,
		Now:          clock.Now,
		Getenv:       func(name string) string { return a.Getenv(name) },
		Subject:      func(subject string) { a.Subject = subject },
	}
}
