// Package parts reads parts of releases by the rules of package validators: it compares what releases promise, and looks
// at the bytes of engines.
package parts

import (
	"context"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators"
)

// comparer reads what releases promise and compares it by the rules of package validators.
type comparer struct{ parts storage.PartStore }

var _ policy.CompareReleases = comparer{}.compare

// Compare reads releases from where their parts are, and compares them.
func Compare(parts storage.PartStore) policy.CompareReleases { return comparer{parts}.compare }

func (c comparer) compare(ctx context.Context, now, was policy.Located) (policy.Comparison, error) {
	next, err := c.documents(ctx, now)
	if err != nil {
		return policy.Comparison{}, err
	}
	current, err := c.documents(ctx, was)
	if err != nil {
		return policy.Comparison{}, err
	}
	return validators.Compare(next, current), nil
}

func (c comparer) documents(ctx context.Context, at policy.Located) (validators.Documents, error) {
	found := validators.Documents{Engines: at.Release.Engines}
	limits, err := c.document(ctx, at.Repository, at.Release.Limits)
	if err != nil {
		return found, err
	}
	if found.Limits, err = validators.ParseLimits(limits); err != nil {
		return found, registry.Errorf(registry.CodeOf(err), "%s of %s: %w", at.Release.Limits, at.Repository, err)
	}
	iface, err := c.document(ctx, at.Repository, at.Release.Interface)
	if err != nil {
		return found, err
	}
	if found.Interface, err = validators.ParseInterface(iface); err != nil {
		return found, registry.Errorf(registry.CodeOf(err), "%s of %s: %w", at.Release.Interface, at.Repository, err)
	}
	return found, nil
}

// document reads the one file of a part, whose digest is checked on the way.
func (c comparer) document(ctx context.Context, repository string, part registry.Digest) ([]byte, error) {
	found, err := c.parts.Fetch(ctx, repository, part, "")
	if err != nil {
		return nil, err
	}
	if len(found.Files) != 1 || found.Files[0].Size > maxDocument {
		return nil, registry.Errorf(registry.CodeTrust, "part %s of %s: want one file of at most %d bytes", part, repository, maxDocument)
	}
	temp, err := tempdir.New("document")
	if err != nil {
		return nil, err
	}
	defer temp.Remove()
	dir := temp.Path
	if _, err := c.parts.Fetch(ctx, repository, part, dir); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, filepath.FromSlash(found.Files[0].Path)))
}

// maxDocument is how large limits and interfaces may be, in bytes.
const maxDocument = 1 << 20
