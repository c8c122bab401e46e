package policyfile

import (
	"os"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
)

// StateChange is what trust retire and trust revoke set.
type StateChange struct {
	Key    string
	State  evidence.KeyState
	Since  string
	DryRun bool
}

// Propose edits the file.
func (n StateChange) Propose(c *Change) (string, []byte, error) {
	since := clock.Now()
	if n.Since != "" {
		var err error
		if since, err = FlagTime("since", n.Since); err != nil {
			return "", nil, err
		}
	}
	names, err := n.find(c)
	if err != nil {
		return "", nil, err
	}
	data := c.Data
	for _, name := range names {
		e := c.Was.Environments.Trust[slices.IndexFunc(c.Was.Environments.Trust, func(e trust.TrustEntry) bool { return e.Key == name })]
		switch have := e.EffectiveState(); {
		case have == n.State && n.Since == "":
			continue
		case have == evidence.KeyRevoked && n.State == evidence.KeyRetired:
			return "", nil, registry.Lastingf(registry.CodeConflict, "key %s is revoked: retired would let its earlier signatures count again", name)
		}
		if data, err = environments.SetKeyState(c.Path, data, name, n.State, since); err != nil {
			return "", nil, err
		}
	}
	return names[0], data, nil
}

// FlagTime reads the time of a flag, in whole seconds; zero without one.
func FlagTime(name, text string) (time.Time, error) {
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
func (n StateChange) find(c *Change) ([]string, error) {
	const digits = 8
	id := ""
	if _, err := os.Stat(n.Key); err == nil {
		if _, id, err = readPublicKey(n.Key); err != nil {
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
		byID := own != "" && (own == id || len(n.Key) >= digits && strings.HasPrefix(own, n.Key))
		if id == "" && e.Key == n.Key || byID {
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
		return nil, registry.Errorf(registry.CodeNotFound, "no trust entry of %s has key %s%s: there are %s",
			c.Path, n.Key, registry.Suggest(n.Key, known), strings.Join(known, ", "))
	case len(ids) > 1:
		return nil, registry.Errorf(registry.CodeInvalid, "%s is the beginning of several keys: want more digits", n.Key)
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
