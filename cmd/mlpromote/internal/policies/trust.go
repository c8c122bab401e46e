package policies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/policyfile"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/service/resolution"
	"mlpromote.dev/mlpromote/registry/trust"
)

// changedTrust is what a command changed in environments.yaml.
type changedTrust struct {
	File  string `json:"file"`
	Key   string `json:"key"` // as the file names it
	KeyID string `json:"keyId,omitempty"`
	// Diff are the lines of the file that went ("-") and came ("+"); empty: it was so already.
	Diff    []string `json:"diff"`
	Changes []string `json:"changes"`
	// Heads are those about which the change decides otherwise, or that have less evidence with it.
	Heads []affectedHead `json:"heads"`
}

// affectedHead is a head that a change of trust concerns.
type affectedHead struct {
	Environment string   `json:"environment"`
	Model       string   `json:"model"`
	Version     string   `json:"version"`
	Refused     bool     `json:"refused"` // nodes no longer get it
	Lost        int      `json:"lost"`    // bundles that counted and no longer count
	Gained      int      `json:"gained"`
	Reasons     []string `json:"reasons,omitempty"`
}

// changeTrust runs one change: propose edits the file, or returns the same bytes.
func changeTrust(ctx context.Context, a *program.App, dryRun bool, propose func(*policyfile.Change) (key string, data []byte, err error)) (err error) {
	if a.Registry != "" {
		return registry.Errorf(registry.CodeInvalid,
			"trust changes environments.yaml here, and not the file of --registry %s: run it at the place where that service reads its policy", a.Registry)
	}
	c, err := policyfile.Begin(a.At())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.End()) }()
	key, data, err := propose(c)
	if err != nil {
		return err
	}
	done := changedTrust{File: c.Path, Key: key, Diff: []string{}, Changes: []string{}, Heads: []affectedHead{}}
	if string(data) == string(c.Data) && !c.Missing {
		done.KeyID = c.Was.KeyID(trust.TrustEntry{Key: key})
		a.UI.Note("nothing to do: %s has that already", c.Path)
		return a.UI.Result(key, done)
	}
	if err := c.Propose(data); err != nil {
		return err
	}
	done.KeyID, done.Changes = c.Is.KeyID(trust.TrustEntry{Key: key}), config.Changes(c.Was, c.Is)
	before := c.Data
	if c.Missing {
		before = nil
	}
	done.Diff = diffLines(string(before), string(data))
	if done.Heads, err = affected(ctx, a, c); err != nil {
		a.UI.Warn(fmt.Sprintf("the effect of the change on the present heads is unknown: %v", err))
	}
	if !dryRun {
		if err := c.Write(); err != nil {
			return err
		}
		a.UI.Note("changed %s. Verbs read it now, a running service within its reload-interval; replicas need mlpromote configuration adopt", c.Path)
	}
	return a.UI.Result(done.text(), done)
}

func (d changedTrust) text() string {
	var b strings.Builder
	for _, line := range d.Diff {
		fmt.Fprintln(&b, ui.Plain(line))
	}
	for _, change := range d.Changes {
		fmt.Fprintln(&b, ui.Plain(change))
	}
	losing := 0
	for _, h := range d.Heads {
		if h.Lost > 0 || h.Refused {
			losing++
		}
		verdict := "stays"
		if h.Refused {
			verdict = "is NO LONGER GIVEN to nodes"
		}
		fmt.Fprintf(&b, "head %s/%s:%s %s: %s stop counting, %d start\n", h.Environment,
			h.Model, h.Version, verdict, registry.Count(h.Lost, "bundle"), h.Gained)
		for _, reason := range h.Reasons {
			fmt.Fprintf(&b, "  %s\n", ui.Plain(reason))
		}
	}
	if len(d.Changes) > 0 {
		fmt.Fprintf(&b, "%s evidence\n", headsLose(losing))
	}
	return b.String()
}

func headsLose(n int) string {
	if n == 1 {
		return "1 head loses"
	}
	return fmt.Sprintf("%d heads lose", n)
}

// affected compares what the present file and the proposed one decide about the heads. A directory
// without a catalog has none.
func affected(ctx context.Context, a *program.App, c *policyfile.Change) (found []affectedHead, err error) {
	found = []affectedHead{}
	if !a.At().HasDatabaseFile() && a.Database == "" {
		return found, nil
	}
	here, err := a.At().OpenCatalog(ctx) // without a lock: nothing is written
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, here.DB.Close()) }()
	today, err := serviceBy(a, here, c.Present())
	if err != nil {
		return found, err
	}
	then, err := serviceBy(a, here, c.Candidate())
	if err != nil {
		return found, err
	}
	was, err := today.Replay(ctx, today)
	if err != nil {
		return found, err
	}
	is, err := then.Replay(ctx, today)
	if err != nil {
		return found, err
	}
	for _, now := range is {
		i := slices.IndexFunc(was, func(h resolution.Replayed) bool {
			return h.Head.Environment == now.Head.Environment && h.Head.Model == now.Head.Model
		})
		if i < 0 {
			continue
		}
		h := affectedHead{
			Environment: now.Head.Environment, Model: now.Head.Model, Version: now.Head.Version,
			Refused: now.Refused() && !was[i].Refused(), Lost: more(now, was[i]), Gained: more(was[i], now),
		}
		if h.Refused {
			h.Reasons = now.Reasons()
		}
		if h.Refused || h.Lost > 0 || h.Gained > 0 {
			found = append(found, h)
		}
	}
	return found, nil
}

// more counts the bundles that a ignores and b does not.
func more(a, b resolution.Replayed) int {
	n := 0
	for _, i := range a.Admission.Ignored {
		same := func(o evidence.Ignored) bool { return o.Bundle == i.Bundle }
		if !slices.ContainsFunc(b.Admission.Ignored, same) {
			n++
		}
	}
	return n
}

// diffLines lists the lines that went and came. Commands add or change few lines, so what is the
// same at the beginning and at the end is left out, and the rest compared line by line.
func diffLines(before, after string) []string {
	was, is := splitLines(before), splitLines(after)
	out := []string{}
	for len(was) > 0 || len(is) > 0 {
		switch {
		case len(was) > 0 && len(is) > 0 && was[0] == is[0]:
			was, is = was[1:], is[1:]
		case len(was) > 0 && !slices.Contains(is, was[0]):
			out, was = append(out, "-"+was[0]), was[1:]
		case len(is) > 0:
			out, is = append(out, "+"+is[0]), is[1:]
		default:
			out, was = append(out, "-"+was[0]), was[1:]
		}
	}
	return out
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
