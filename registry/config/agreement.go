package config

import (
	"context"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
)

// Agreement decides whether a process may act on its own configuration.
type Agreement struct {
	Own history.Configuration
	// Agreed returns the configuration that the processes of the catalog agreed on.
	Agreed func(ctx context.Context) (history.Configuration, error)
	// Service says that the error goes to clients of a service, not to the user of a command.
	Service bool
}

// Check returns CodeUnavailable if the configuration differs from the agreed one. It compares
// the named parts, or all if none is named.
func (a Agreement) Check(ctx context.Context, parts ...string) error {
	agreed, err := a.Agreed(ctx)
	if err != nil {
		return err
	}
	var differs []string
	for _, part := range a.Own.Differs(agreed) {
		if len(parts) == 0 || slices.Contains(parts, part) {
			differs = append(differs, part)
		}
	}
	if len(differs) == 0 {
		return nil
	}
	what := strings.Join(differs, ", ")
	if a.Service {
		return registry.ForClients(
			registry.Errorf(registry.CodeUnavailable,
				"the configuration of this process differs from the agreed one (%s): it has %s, the agreed one is %s",
				what, a.Own, agreed),
			"the configuration of this replica differs from the agreed one (%s), so it refuses changes and resolve: try another replica, or later", what)
	}
	return registry.WithHint(
		registry.Lastingf(registry.CodeUnavailable,
			"environments.yaml, or a public key that it names, differs from what the services of this catalog agreed on"),
		"use the files that they use, or adopt these: mlpromote configuration adopt")
}
