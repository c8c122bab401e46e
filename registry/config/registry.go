package config

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// Registry wraps a registry. Changes fail if write returns an error, and Resolve fails if
// resolve does. Other reads pass unchecked: they return facts of the catalog and content by
// digest, and do not depend on the configuration.
func Registry(inner registry.Interface, write, resolve func(ctx context.Context) error) registry.Interface {
	return guarded{inner, write, resolve}
}

// guarded does not embed the registry, so that a method added later cannot pass unchecked.
type guarded struct {
	inner          registry.Interface
	write, resolve func(ctx context.Context) error
}

func (g guarded) Publish(ctx context.Context, p registry.Publication) (registry.Head, error) {
	if err := g.write(ctx); err != nil {
		return registry.Head{}, err
	}
	return g.inner.Publish(ctx, p)
}

func (g guarded) Attach(ctx context.Context, a registry.Attachment) (registry.Digest, error) {
	if err := g.write(ctx); err != nil {
		return "", err
	}
	return g.inner.Attach(ctx, a)
}

func (g guarded) Attest(ctx context.Context, r registry.AttestRequest) (registry.Attested, error) {
	if err := g.write(ctx); err != nil {
		return registry.Attested{}, err
	}
	return g.inner.Attest(ctx, r)
}

func (g guarded) Restrict(ctx context.Context, environment string, bundle []byte) (registry.SignedRestrictions, error) {
	if err := g.write(ctx); err != nil {
		return registry.SignedRestrictions{}, err
	}
	return g.inner.Restrict(ctx, environment, bundle)
}

// Restrictions is checked as a resolve is: the configuration decides who is an approver.
func (g guarded) Restrictions(ctx context.Context, environment string) (registry.SignedRestrictions, error) {
	if err := g.resolve(ctx); err != nil {
		return registry.SignedRestrictions{}, err
	}
	return g.inner.Restrictions(ctx, environment)
}

// TrustBundle passes: it is signed, and says itself by which configuration.
func (g guarded) TrustBundle(ctx context.Context) (registry.SignedTrust, error) {
	return g.inner.TrustBundle(ctx)
}

func (g guarded) PublishTrust(ctx context.Context, bundle []byte) (registry.SignedTrust, error) {
	if err := g.write(ctx); err != nil {
		return registry.SignedTrust{}, err
	}
	return g.inner.PublishTrust(ctx, bundle)
}

// Promote checks a dry run as it checks a resolve. A dry run changes nothing, but it must not
// return a decision made under rules other than the agreed ones.
func (g guarded) Promote(ctx context.Context, r registry.PromoteRequest) (registry.Promotion, error) {
	may := g.write
	if r.DryRun {
		may = g.resolve
	}
	if err := may(ctx); err != nil {
		return registry.Promotion{}, err
	}
	return g.inner.Promote(ctx, r)
}

func (g guarded) Rollback(ctx context.Context, r registry.RollbackRequest) (registry.Promotion, error) {
	if err := g.write(ctx); err != nil {
		return registry.Promotion{}, err
	}
	return g.inner.Rollback(ctx, r)
}

func (g guarded) SetHold(ctx context.Context, environment, model, reason string) error {
	if err := g.write(ctx); err != nil {
		return err
	}
	return g.inner.SetHold(ctx, environment, model, reason)
}

func (g guarded) AcceptHistory(ctx context.Context, environment, model, reason string) error {
	if err := g.write(ctx); err != nil {
		return err
	}
	return g.inner.AcceptHistory(ctx, environment, model, reason)
}

func (g guarded) HistoryFaults(ctx context.Context) ([]registry.HistoryFault, error) {
	return g.inner.HistoryFaults(ctx)
}

func (g guarded) ReleaseHold(ctx context.Context, r registry.HoldRelease) error {
	if err := g.write(ctx); err != nil {
		return err
	}
	return g.inner.ReleaseHold(ctx, r)
}

// Resolve is checked in every environment: the configuration also decides which are protected.
func (g guarded) Resolve(ctx context.Context, q registry.ResolveQuery) (registry.Resolution, error) {
	if err := g.resolve(ctx); err != nil {
		return registry.Resolution{}, err
	}
	return g.inner.Resolve(ctx, q)
}

func (g guarded) Environments(ctx context.Context) (registry.Environments, error) {
	return g.inner.Environments(ctx)
}

func (g guarded) Heads(ctx context.Context, environment, model string) ([]registry.Head, error) {
	return g.inner.Heads(ctx, environment, model)
}

func (g guarded) History(ctx context.Context, q registry.HistoryQuery) ([]registry.Event, error) {
	return g.inner.History(ctx, q)
}

func (g guarded) Release(ctx context.Context, environment, model, tagOrDigest string) (registry.Release, error) {
	return g.inner.Release(ctx, environment, model, tagOrDigest)
}

func (g guarded) Claims(ctx context.Context, environment string, r registry.Release) ([]registry.Claim, registry.IgnoredEvidence, error) {
	return g.inner.Claims(ctx, environment, r)
}

func (g guarded) Engine(ctx context.Context, environment, model string, d registry.Digest) (registry.Engine, error) {
	return g.inner.Engine(ctx, environment, model, d)
}

func (g guarded) Bundle(ctx context.Context, environment, model string, d registry.Digest) (registry.Bundle, error) {
	return g.inner.Bundle(ctx, environment, model, d)
}

func (g guarded) Models(ctx context.Context, environment, after string, limit int) (registry.Page[registry.ModelHeads], error) {
	return g.inner.Models(ctx, environment, after, limit)
}

func (g guarded) Releases(ctx context.Context, environment, model, after string, limit int) (registry.Page[registry.TaggedRelease], error) {
	return g.inner.Releases(ctx, environment, model, after, limit)
}
