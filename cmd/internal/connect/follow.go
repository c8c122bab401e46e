package connect

import (
	"context"
	"os"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer/follow"
)

// follower is what a trust file with follow: says; nil without.
func (t Trust) follower() (*follow.Follower, error) {
	if t.File == "" {
		return nil, nil //nolint:nilnil // no error and no value: the caller checks for nil
	}
	file, err := environments.LoadTrust(t.File)
	if err != nil || file.Follow == nil {
		return nil, err
	}
	f := &follow.Follower{Registry: file.Registry, State: file.Follow.State, Now: t.Now}
	for _, name := range file.Follow.Publishers {
		pem, err := os.ReadFile(environments.KeyPath(file.Dir, name))
		if err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "%s: publisher: %w", t.File, err)
		}
		f.Publishers = append(f.Publishers, follow.Publisher{Name: name, PEM: pem})
	}
	return f, nil
}

// Follows reports whether the file follows trust bundles.
func (t Trust) Follows() (bool, error) {
	f, err := t.follower()
	return f != nil, err
}

// Follow accepts the newest trust bundle of a registry, which must be current. Only what was accepted is judged by
// afterwards. A file without follow: stays as it is. Errors: CodeTrust for a bundle that does not count, does
// not follow the one before, or has expired.
func (t Trust) Follow(ctx context.Context, from interface {
	TrustBundle(ctx context.Context) (trust.SignedTrust, error)
}) (Trust, error) {
	if f, err := t.follower(); f == nil {
		return t, err
	}
	signed, err := from.TrustBundle(ctx)
	if registry.HasCode(err, registry.CodeNotFound) {
		err = registry.WithHint(registry.Errorf(registry.CodeTrust, "%s follows the trust bundles of the registry, and it publishes none: %w", t.File, err),
			"give the service the key of a publisher, or run mlpromote trust publish on the machine that has that key")
	}
	if err != nil {
		return t, err
	}
	return t.Accept(ctx, signed.Bundle)
}

// Accept is Follow with a bundle that came another way. Nil means the one that is remembered.
func (t Trust) Accept(ctx context.Context, bundle []byte) (Trust, error) {
	f, err := t.follower()
	if f == nil {
		return t, err
	}
	if bundle != nil {
		t.accepted, err = f.Update(ctx, bundle)
		return t, err
	}
	if t, err = t.Recall(ctx); err != nil {
		return t, err
	}
	return t, t.Expired()
}

// AcceptSaved accepts the bundle of a saved release, unless a newer one was accepted before: files may be loaded in another
// order than they were saved. What is judged by must be current. Nil: the file has no bundle. Errors: CodeTrust also for a
// bundle of another registry.
func (t Trust) AcceptSaved(ctx context.Context, bundle []byte) (Trust, error) {
	remembered, err := t.Recall(ctx)
	if err != nil && !registry.HasCode(err, registry.CodeNotFound) {
		return t, err
	}
	if err == nil && remembered.accepted != nil && bundle != nil {
		saved, err := trust.PeekTrustBundle(bundle)
		if err != nil {
			return t, err
		}
		if saved.Registry != remembered.accepted.Registry {
			return t, registry.Errorf(registry.CodeTrust,
				"the trust bundle in the file is of the registry %q, and this machine follows %q: save it again there",
				saved.Registry, remembered.accepted.Registry)
		}
		if saved.Version < remembered.accepted.Version {
			bundle = nil
		}
	}
	return t.Accept(ctx, bundle)
}

// Recall takes the bundle that was accepted last, unless one was accepted by this Trust. It needs no network, and the
// bundle may have expired. Errors: CodeNotFound if none was accepted; CodeTrust if what is remembered was changed.
func (t Trust) Recall(ctx context.Context) (Trust, error) {
	f, err := t.follower()
	if f == nil || t.accepted != nil {
		return t, err
	}
	t.accepted, err = f.Remembered(ctx)
	return t, err
}

// Expired says why nothing new is accepted by the bundle that was accepted last: it has expired, or the clock is
// wrong. Nil: it is current, or the file follows none.
func (t Trust) Expired() error {
	if t.accepted == nil {
		return nil
	}
	now := time.Now
	if t.Now != nil {
		now = t.Now
	}
	return t.accepted.CheckCurrent(now())
}

// CheckRestrictions refuses a restriction list of the registry that is older than that of the accepted bundle.
func (t Trust) CheckRestrictions(signed restriction.SignedRestrictions) error {
	if t.accepted == nil {
		return nil
	}
	return t.accepted.CheckRestrictions(signed)
}

// KnownRestrictions gives the signed restriction list that the accepted bundle has of the environment with a URI; nil
// if there is none.
func (t Trust) KnownRestrictions(environment string) []byte {
	if t.accepted == nil {
		return nil
	}
	name, ok := strings.CutPrefix(environment, trust.RegistryURI(t.accepted.Registry))
	if !ok {
		return nil
	}
	return t.accepted.RestrictionsOf(strings.TrimSuffix(name, "/")).Bundle
}
