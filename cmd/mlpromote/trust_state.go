package main

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/environments"
)

// newState is what trust retire and trust revoke set.
type newState struct {
	key    string
	state  registry.KeyState
	since  string
	dryRun bool
}

func (a *app) trustRetireCommand() *cobra.Command {
	return a.trustStateCommand(newState{state: registry.KeyRetired}, &cobra.Command{
		Use:   "retire KEY",
		Short: "Let a key that was replaced sign nothing new",
		Long: `Sets the state retired in every entry of the key in environments.yaml. What was recorded before
still counts, what comes later does not. What the key said against a release always counts.`,
		Example: "  mlpromote trust retire keys/old-builder.pub",
	})
}

func (a *app) trustRevokeCommand() *cobra.Command {
	return a.trustStateCommand(newState{state: registry.KeyRevoked}, &cobra.Command{
		Use:   "revoke KEY",
		Short: "Let nothing count that a stolen key signed",
		Long: `Sets the state revoked in every entry of the key in environments.yaml. Nothing that the key said
for a release counts, whenever that was. What it said against a release still does.`,
		Example: "  mlpromote trust revoke keys/builder.pub --dry-run",
	})
}

func (a *app) trustStateCommand(n newState, c *cobra.Command) *cobra.Command {
	c.Long += `
Keep the entry and the file of the key. KEY is the path that the file has for it, a file with
the public key, or the first 8 or more digits of its identifier.

stdout: the lines that changed, what no longer counts, and the heads about which that decides
otherwise. --dry-run changes nothing.`
	c.Args = command.Exactly("KEY")
	c.RunE = func(c *cobra.Command, args []string) error {
		n.key = args[0]
		return a.changeTrust(c.Context(), n.dryRun, n.propose)
	}
	c.Flags().StringVar(&n.since, "since", "", "time from which, such as 2026-11-21T09:00:00Z (default: now)")
	c.Flags().BoolVar(&n.dryRun, "dry-run", false, "show what would change, and change nothing")
	return c
}

func (n newState) propose(c *wiring.PolicyChange) (string, []byte, error) {
	since := clock.Now()
	if n.since != "" {
		var err error
		if since, err = flagTime("since", n.since); err != nil {
			return "", nil, err
		}
	}
	names, err := n.find(c)
	if err != nil {
		return "", nil, err
	}
	data := c.Data
	for _, name := range names {
		e := c.Was.Environments.Trust[slices.IndexFunc(c.Was.Environments.Trust, func(e registry.TrustEntry) bool { return e.Key == name })]
		switch have := e.EffectiveState(); {
		case have == n.state && n.since == "":
			continue
		case have == registry.KeyRevoked && n.state == registry.KeyRetired:
			return "", nil, registry.Lastingf(registry.CodeConflict, "key %s is revoked: retired would let what it signed before count again", name)
		}
		if data, err = environments.SetKeyState(c.Path, data, name, n.state, since); err != nil {
			return "", nil, err
		}
	}
	return names[0], data, nil
}

// flagTime reads the time of a flag, in whole seconds; zero without one.
func flagTime(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, registry.Errorf(registry.CodeInvalid, "--%s %q: want a time such as 2026-11-21T09:00:00Z", name, text)
	}
	return at.UTC().Truncate(time.Second), nil
}

// find lists the paths by which the file names the key.
func (n newState) find(c *wiring.PolicyChange) ([]string, error) {
	const digits = 8
	id := ""
	if _, err := os.Stat(n.key); err == nil {
		if _, id, err = readPublicKey(n.key); err != nil {
			return nil, err
		}
	}
	var names, ids, known []string
	for _, e := range c.Was.Environments.Trust {
		if e.Key == "" {
			continue
		}
		known = append(known, e.Key)
		own := c.Was.KeyID(e)
		byID := own != "" && (own == id || len(n.key) >= digits && strings.HasPrefix(own, n.key))
		if id == "" && e.Key == n.key || byID {
			names = add(names, e.Key)
			ids = add(ids, own)
		}
	}
	for _, e := range c.Was.Environments.Trust { // the same key in another file
		if own := c.Was.KeyID(e); e.Key != "" && own != "" && slices.Contains(ids, own) {
			names = add(names, e.Key)
		}
	}
	switch {
	case len(names) == 0:
		return nil, registry.Errorf(registry.CodeNotFound, "no trust entry of %s has key %s%s: there are %s", c.Path, n.key, registry.Suggest(n.key, known), strings.Join(known, ", "))
	case len(ids) > 1:
		return nil, registry.Errorf(registry.CodeInvalid, "%s is the beginning of several keys: want more digits", n.key)
	}
	return names, nil
}

// add appends a text that is not there yet.
func add(texts []string, text string) []string {
	if slices.Contains(texts, text) {
		return texts
	}
	return append(texts, text)
}
