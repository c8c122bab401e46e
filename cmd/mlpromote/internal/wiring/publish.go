package wiring

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/checkpoint"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/kms"
)

// TrustLife is how long trust bundles live by default.
const TrustLife = 14 * 24 * time.Hour

// Publisher makes trust bundles of the files of this machine, signs and publishes them.
type Publisher struct {
	Registry interface {
		api.TrustPublisher
		Restrictions(ctx context.Context, environment string) (restriction.SignedRestrictions, error)
	}
	Checkpoint func(ctx context.Context) ([]byte, error) // a signed checkpoint of the history
	Own        config.Snapshot                           // environments.yaml here, with its keys
	Verify     storage.VerifyEvidence                    // by those keys
	VerifyNote trust.VerifyNote
	Keys       *signer.Keyring
	Life       time.Duration
}

// TrustPublisher publishes by a configuration of this machine. checkpoint makes checkpoints.
func (i *Instance) TrustPublisher(own config.Snapshot, checkpoint func(context.Context) ([]byte, error), life time.Duration) Publisher {
	return Publisher{Registry: i, Checkpoint: checkpoint, Own: own, Verify: i.Verify, VerifyNote: i.VerifyNote, Keys: i.Keys, Life: life}
}

// Publish makes, signs and publishes the next trust bundle if what it says changed, if half of the life
// of the newest is over, or if it is to be renewed in any case. It returns the newest bundle, and whether
// it is a new one. Errors: CodeUnavailable without a publisher's key; those of the registry.
func (p Publisher) Publish(ctx context.Context, renew bool) (trust.SignedTrust, bool, error) {
	key, err := p.Keys.Signer(ctx, evidence.RolePublisher)
	if err != nil {
		return trust.SignedTrust{}, false, err
	}
	before, err := p.newest(ctx)
	if err != nil {
		return before, false, err
	}
	next, err := p.draft(ctx)
	if err != nil {
		return before, false, err
	}
	changed, err := next.Differs(before.Trust)
	if err != nil {
		return before, false, err
	}
	now := clock.Now()
	half := before.Trust.IssuedOn.Add(before.Trust.ExpiresOn.Sub(before.Trust.IssuedOn) / 2)
	if len(changed) == 0 && !renew && now.Before(half) {
		return before, false, nil
	}
	next.Version, next.Previous = before.Trust.Version+1, before.Digest
	next.IssuedOn, next.ExpiresOn = now, p.end(key, now)
	next.Checkpoint = p.checkpoint(ctx, before.Trust.Checkpoint)
	published, err := p.publish(ctx, key, next)
	return published, err == nil, err
}

// newest is the bundle before, or the zero value. What it says is read from its signed bytes, so that a registry cannot
// have a version or a checkpoint signed that no publisher signed before.
func (p Publisher) newest(ctx context.Context) (trust.SignedTrust, error) {
	before, err := p.Registry.TrustBundle(ctx)
	if registry.HasCode(err, registry.CodeNotFound) {
		return trust.SignedTrust{}, nil
	}
	if err != nil {
		return before, err
	}
	name := p.Own.Environments.Registry
	claim, err := p.Verify(ctx, before.Bundle, trust.RegistryURI(name))
	if err != nil {
		return before, err
	}
	revoked := claim.Key == evidence.KeyRevoked
	claim.Key, claim.Window = evidence.KeyTrusted, evidence.Window{} // of a key that was replaced since
	if before.Trust, err = trust.BundleOf(claim, name); err != nil {
		return before, err
	}
	if revoked {
		before.Trust.Checkpoint = trust.KeptCheckpoint{}
	}
	before.Digest = digest.FromBytes(before.Bundle)
	return before, nil
}

// publish signs and publishes a bundle. It is compared with what the registry returns.
func (p Publisher) publish(ctx context.Context, key signer.Signer, next trust.TrustBundle) (trust.SignedTrust, error) {
	statement, err := trust.NewTrustBundle(next)
	if err != nil {
		return trust.SignedTrust{}, err
	}
	bundle, err := key.Sign(ctx, statement)
	if err != nil {
		return trust.SignedTrust{}, err
	}
	claim, err := p.Verify(ctx, bundle, trust.RegistryURI(next.Registry))
	if err == nil {
		_, err = trust.BundleOf(claim, next.Registry)
	}
	if err != nil {
		return trust.SignedTrust{}, registry.WithHint(
			registry.Errorf(registry.CodeOf(err), "the key %s would not count as %s: %w", key.KeyID(), evidence.RolePublisher, err),
			"mlpromote trust add FILE.pub --role %s, for the whole registry and without another role", evidence.RolePublisher)
	}
	signed, err := p.Registry.PublishTrust(ctx, bundle)
	if err == nil && signed.Digest != digest.FromBytes(bundle) {
		err = registry.Errorf(registry.CodeConflict, "trust bundle %d: the registry has another one now, %s", next.Version, signed.Digest)
	}
	return signed, err
}

// end is when a bundle expires: at the latest with the window of its key, so that a thief of an old key
// gains nothing from an old date.
func (p Publisher) end(key signer.Signer, now time.Time) time.Time {
	end := now.Add(p.Life)
	for _, e := range p.Own.Environments.Trust {
		pem, err := p.Own.Key(e.Key)
		if err != nil {
			continue
		}
		if id, err := signer.KeyID(pem); err == nil && id == key.KeyID() && !e.Window.Until.IsZero() && e.Window.Until.Before(end) {
			end = e.Window.Until
		}
	}
	return end
}

// draft is what the files of this machine say, and the restriction lists of the registry, as far as
// approvers who are trusted here signed them.
func (p Publisher) draft(ctx context.Context) (trust.TrustBundle, error) {
	draft, err := policy.DraftTrustBundle(p.Own.Environments, p.Own.Key)
	if err != nil {
		return draft, err
	}
	var lists []restriction.SignedRestrictions
	for _, e := range p.Own.Environments.List {
		signed, err := p.Registry.Restrictions(ctx, e.Name)
		if err != nil {
			return draft, err
		}
		if err := p.checkList(ctx, signed); err != nil {
			return draft, err
		}
		lists = append(lists, signed)
	}
	return draft.WithRestrictions(lists), nil
}

// checkList verifies a list, so that a registry cannot have another one signed.
func (p Publisher) checkList(ctx context.Context, signed restriction.SignedRestrictions) error {
	if signed.Digest == "" && len(signed.Bundle) == 0 {
		return nil
	}
	resource := p.Own.Environments.EnvironmentURI(signed.Environment)
	claim, err := p.Verify(ctx, signed.Bundle, resource)
	if err != nil {
		return err
	}
	list, err := claim.RestrictionList(resource)
	if err == nil && (list.Counter != signed.List.Counter || digest.FromBytes(signed.Bundle) != signed.Digest) {
		err = registry.Errorf(registry.CodeTrust, "restriction list of %s: the registry announced number %d, and it is %d",
			signed.Environment, signed.List.Counter, list.Counter)
	}
	return err
}

// checkpoint is a checkpoint of the history that counts by the keys of this machine. Where none can be
// made, it is that of the bundle before: that a key was revoked, also the one that signs checkpoints, must
// reach nodes all the same.
func (p Publisher) checkpoint(ctx context.Context, before trust.KeptCheckpoint) trust.KeptCheckpoint {
	note, err := p.Checkpoint(ctx)
	if err != nil {
		return before
	}
	signed, err := checkpoint.Open(ctx, p.VerifyNote, note)
	if err != nil || signed.CountsAt(clock.Now()) != nil || signed.Origin.Registry != p.Own.Environments.Registry {
		return before
	}
	return trust.KeptCheckpoint{Size: signed.Size, Note: string(note)}
}

// Publishes reports whether the folder of keys has one of a publisher.
func (l Location) Publishes() bool {
	for _, extension := range []string{".key", kms.Extension} {
		if _, err := os.Stat(filepath.Join(l.KeyDir(), string(evidence.RolePublisher)+extension)); err == nil {
			return true
		}
	}
	return false
}

// CheckTrustLife refuses a life that no trust bundle can have. Errors: CodeInvalid.
func CheckTrustLife(life time.Duration) error {
	if life < time.Minute || life > trust.MaxTrustLife {
		return registry.Errorf(registry.CodeInvalid, "life of trust bundles %v: want 1m to %v", life, trust.MaxTrustLife)
	}
	return nil
}
