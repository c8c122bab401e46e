package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/registry/trust"
)

// stateName is the name of a remembered bundle: its version, so that the order of names is that of versions.
var stateName = regexp.MustCompile(`^[0-9]{19}\.json$`)

// readAttempts is how often the folder is read again because another process removed old bundles meanwhile.
const readAttempts = 10

func nameOf(version int64) string { return fmt.Sprintf("%019d.json", version) }

// names lists the remembered bundles, oldest first.
func (f Follower) names() ([]string, error) {
	entries, err := os.ReadDir(f.State)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, registry.Lastingf(registry.CodeUnavailable, "state of follow: %w", err)
	}
	var names []string
	for _, e := range entries {
		if stateName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// newest returns the newest remembered bundle, or nil.
func (f Follower) newest(ctx context.Context) (*Accepted, error) {
	for range readAttempts {
		kept, err := f.kept(ctx)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || len(kept) == 0 {
			return nil, err
		}
		return kept[len(kept)-1], nil
	}
	return nil, registry.Errorf(registry.CodeUnavailable, "state of follow: %s changes while it is read: try again", f.State)
}

// kept reads the remembered bundles. Beside the newest there are older ones only where its signer is known by
// them and not by a file of this machine: each must count by the ones before. Errors: fs.ErrNotExist in the
// chain if a file vanished; CodeTrust if the newest does not count.
func (f Follower) kept(ctx context.Context) ([]*Accepted, error) {
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	var kept []*Accepted
	for i, name := range names {
		bundle, err := readBundle(filepath.Join(f.State, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		var next *Accepted
		if err == nil {
			next, err = f.check(ctx, bundle, newest(kept))
		}
		if err == nil && nameOf(next.Version) != name {
			err = registry.Errorf(registry.CodeTrust, "it is version %d", next.Version)
		}
		if err == nil {
			kept = append(kept, next)
			continue
		}
		if i == len(names)-1 {
			return nil, registry.WithHint(registry.Errorf(registry.CodeTrust,
				"%s, the newest trust bundle that was accepted here, does not count: %w", filepath.Join(f.State, name), err),
				"the folder or the publishers of follow: were changed: look at why first; "+
					"removing the folder makes this a first contact again, which also an older bundle passes")
		}
	}
	return kept, nil
}

func newest(kept []*Accepted) *Accepted {
	if len(kept) == 0 {
		return nil
	}
	return kept[len(kept)-1]
}

// readBundle reads a file of bounded size.
func readBundle(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, trust.MaxTrustBundle+1))
	if err == nil && len(data) > trust.MaxTrustBundle {
		err = registry.Errorf(registry.CodeTrust, "%s has more than %d bytes", path, trust.MaxTrustBundle)
	}
	return data, err
}

// remember writes a bundle beside those that are remembered, each in a file of its own, so that no process can
// put an older one in its place. Then it removes those that are no longer needed. Errors: CodeTrust if another
// process accepted a newer one, or another one of this version.
func (f Follower) remember(ctx context.Context, a *Accepted) error {
	fail := func(err error) error {
		return registry.Lastingf(registry.CodeUnavailable, "remember trust bundle %d: %w", a.Version, err)
	}
	if err := os.MkdirAll(f.State, 0o700); err != nil {
		return fail(err)
	}
	path := filepath.Join(f.State, nameOf(a.Version))
	err := atomicfile.Create(path, a.Bundle, 0o600)
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fail(err)
	}
	newest, err := f.newest(ctx)
	if err != nil {
		return err
	}
	if newest == nil {
		return fail(fs.ErrNotExist)
	}
	if err := a.CheckFollows(newest.AcceptedTrust); err != nil { // another process was faster
		if made {
			err = errors.Join(err, removed(path))
		}
		return err
	}
	return f.prune(ctx, a)
}

// prune removes older bundles, but for those by which the signer of the newest is known.
func (f Follower) prune(ctx context.Context, newest *Accepted) error {
	kept, err := f.kept(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process prunes
	}
	if err != nil {
		return err
	}
	names, err := f.names()
	if err != nil {
		return err
	}
	needed, err := f.needed(ctx, kept, newest)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name >= nameOf(newest.Version) || slices.Contains(needed, name) {
			continue
		}
		if err := removed(filepath.Join(f.State, name)); err != nil {
			return err
		}
	}
	return nil
}

// needed names the oldest bundles by which the signer of the newest is known; none if a file of this machine
// names it.
func (f Follower) needed(ctx context.Context, kept []*Accepted, newest *Accepted) ([]string, error) {
	var names []string
	var known *Accepted
	for _, old := range kept {
		_, err := f.check(ctx, newest.Bundle, known)
		if err == nil || old.Version >= newest.Version {
			break
		}
		if !registry.HasCode(err, registry.CodeTrust) {
			return nil, err
		}
		known, names = old, append(names, nameOf(old.Version))
	}
	return names, nil
}

// removed removes a file that may be gone already.
func removed(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return registry.Lastingf(registry.CodeUnavailable, "state of follow: %w", err)
	}
	return nil
}
