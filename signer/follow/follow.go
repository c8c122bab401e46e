package follow

import (
	"context"
	"io/fs"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/checkpoint"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

// Follower follows one registry. It is safe for several processes at once.
type Follower struct {
	Registry   string        // name
	Publishers []Publisher   // publishers trusted at the first contact
	State      string        // folder that remembers accepted bundles; it is made when it is needed
	Now        storage.Clock // nil means time.Now
}

// Publisher is a public key that a file of this machine names.
type Publisher struct {
	Name string // for messages
	PEM  []byte
}

// Accepted is a trust bundle with a signature that counts for a follower.
type Accepted struct {
	trust.AcceptedTrust
	Trust  *signer.Trust // verifies by the keys of the bundle
	Bundle []byte        // as it was signed
}

func (f Follower) now() time.Time {
	if f.Now == nil {
		return time.Now()
	}
	return f.Now()
}

// Update accepts the bundle that a registry hands out, and requires that it is current. A newer one is
// remembered also if it has expired. Errors: as Accept; CodeTrust for an expired one.
func (f Follower) Update(ctx context.Context, bundle []byte) (*Accepted, error) {
	accepted, err := f.Accept(ctx, bundle)
	if err != nil {
		return nil, err
	}
	return accepted, accepted.CheckCurrent(f.now())
}

// Accept checks a bundle against the one that is remembered, and remembers it if it is newer. Errors:
// CodeTrust if its signature does not count, or it does not follow; as Remembered, except CodeNotFound.
func (f Follower) Accept(ctx context.Context, bundle []byte) (*Accepted, error) {
	before, err := f.newest(ctx)
	if err != nil {
		return nil, err
	}
	next, err := f.check(ctx, bundle, before)
	if err != nil {
		return nil, err
	}
	if before != nil {
		if err := next.CheckFollows(before.AcceptedTrust); err != nil {
			return nil, err
		}
		if err := sameHistory(before.TrustBundle, next.TrustBundle); err != nil {
			return nil, err
		}
		if next.Digest == before.Digest {
			return before, nil
		}
	}
	if registry.ClaimsFuture(next.IssuedOn, f.now()) {
		return nil, next.CheckCurrent(f.now()) // a version of the future would lock this machine out
	}
	return next, f.remember(ctx, next)
}

// Remembered returns the newest bundle that was accepted, also if it has expired. Errors: CodeNotFound
// if none was; CodeTrust if the folder was changed.
func (f Follower) Remembered(ctx context.Context) (*Accepted, error) {
	newest, err := f.newest(ctx)
	if err == nil && newest == nil {
		err = registry.WithHint(registry.Errorf(registry.CodeNotFound, "no trust bundle of %s was accepted here yet: %s has none", f.Registry, f.State),
			"pull from the service, or load a saved release, which brings one")
	}
	return newest, err
}

// check verifies a bundle: by pinned keys, by those of an earlier one (nil: none), and by its own.
func (f Follower) check(ctx context.Context, bundle []byte, before *Accepted) (*Accepted, error) {
	pins, err := f.pins()
	if err != nil {
		return nil, err
	}
	pinned, err := f.claim(ctx, pins, bundle)
	if err != nil {
		return nil, err
	}
	var earlier, own *evidence.Claim
	if before != nil {
		if earlier, err = f.claim(ctx, before.Trust, bundle); err != nil {
			return nil, err
		}
	}
	if pinned == nil && earlier == nil { // what a stranger signed is not read
		return nil, trust.CheckPublisher(nil, nil, nil)
	}
	trustEntries, err := trust.PeekTrustBundle(bundle)
	if err != nil {
		return nil, err
	}
	accepted := &Accepted{AcceptedTrust: trust.AcceptedTrust{TrustBundle: trustEntries, Digest: digest.FromBytes(bundle)}, Bundle: bundle}
	if accepted.Trust, err = trustOf(trustEntries); err != nil {
		return nil, err
	}
	if own, err = f.claim(ctx, accepted.Trust, bundle); err != nil {
		return nil, err
	}
	if err := trust.CheckPublisher(own, earlier, pinned); err != nil {
		return nil, err
	}
	if earlier != nil && earlier.SignedAs(evidence.RolePublisher) {
		// The window of a key is what the bundle before says. A thief of an old key would write another one.
		if _, err := trust.BundleOf(*earlier, f.Registry); err != nil {
			return nil, err
		}
	}
	if accepted.TrustBundle, err = trust.BundleOf(*own, f.Registry); err != nil {
		return nil, err
	}
	return accepted, checkCheckpoint(accepted.TrustBundle)
}

// claim returns the claim of a bundle by some keys, or nil if it does not verify by them.
func (f Follower) claim(ctx context.Context, trustEntries *signer.Trust, bundle []byte) (*evidence.Claim, error) {
	c, err := trustEntries.Verify(ctx, bundle, trust.RegistryURI(f.Registry))
	if registry.HasCode(err, registry.CodeTrust) {
		return nil, nil //nolint:nilnil // no error and no value: the caller checks for nil
	}
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// pins trusts the keys that files of this machine name, as publishers of the registry.
func (f Follower) pins() (*signer.Trust, error) {
	var entries []trust.TrustEntry
	keys := make(map[string][]byte)
	for _, p := range f.Publishers {
		entries = append(entries, trust.TrustEntry{Key: p.Name,
			Roles: []evidence.Role{evidence.RolePublisher}, Resources: []string{trust.RegistryURI(f.Registry)}})
		keys[p.Name] = p.PEM
	}
	return signer.NewTrust(entries, reader(keys))
}

// trustOf trusts what a bundle says.
func trustOf(b trust.TrustBundle) (*signer.Trust, error) {
	var entries []trust.TrustEntry
	var roots []trust.Root
	files := make(map[string][]byte)
	for _, t := range b.Trust {
		entries = append(entries, t.Entry)
		if t.Entry.Key != "" {
			files[t.Entry.Key] = []byte(t.PEM)
		}
	}
	for _, r := range b.Roots {
		roots = append(roots, r.Root)
		if there, again := files[r.Root.Path()]; again && string(there) != r.Content {
			return nil, registry.Errorf(registry.CodeTrust, "trust bundle %d: %q is two files", b.Version, r.Root.Path())
		}
		files[r.Root.Path()] = []byte(r.Content)
	}
	trust, err := signer.NewTrust(entries, reader(files))
	if err != nil {
		return nil, registry.Errorf(registry.CodeTrust, "trust bundle %d: %w", b.Version, err)
	}
	return trust.WithRoots(roots), nil
}

// reader reads files that are in memory.
func reader(files map[string][]byte) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		data, ok := files[path]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return data, nil
	}
}

// checkCheckpoint checks that the checkpoint of a bundle is of its registry, and has the size that the bundle
// says. The publisher vouches for it, so the signature of the promoter is not needed.
func checkCheckpoint(b trust.TrustBundle) error {
	if b.Checkpoint.Size == 0 {
		return nil
	}
	c, err := checkpoint.Peek([]byte(b.Checkpoint.Note))
	if err == nil && (c.Size != b.Checkpoint.Size || c.Origin.Registry != b.Registry) {
		err = registry.Errorf(registry.CodeTrust, "it has %d events of %s", c.Size, c.Origin.Registry)
	}
	if err != nil {
		return registry.Errorf(registry.CodeTrust, "trust bundle %d: its checkpoint of %d events: %w", b.Version, b.Checkpoint.Size, err)
	}
	return nil
}

// sameHistory refuses a bundle whose checkpoint is of another history than that of the one before, or
// says something else about the same events.
func sameHistory(before, next trust.TrustBundle) error {
	if before.Checkpoint.Size == 0 || next.Checkpoint.Size == 0 {
		return nil
	}
	was, err := checkpoint.Peek([]byte(before.Checkpoint.Note))
	if err != nil {
		return err
	}
	is, err := checkpoint.Peek([]byte(next.Checkpoint.Note))
	if err != nil {
		return err
	}
	if was.Origin != is.Origin || was.Size == is.Size && was.Root != is.Root {
		return registry.WithHint(registry.Errorf(registry.CodeTrust,
			"trust bundle %d: its checkpoint of %d events is of another history than version %d", next.Version, is.Size, before.Version),
			"mlpromote history verify --checkpoint FILE shows whether the history was rewritten or replaced")
	}
	return nil
}
