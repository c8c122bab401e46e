package access

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// Guard wraps a registry and checks the permissions of the context's principal on every call.
// Lists leave out what the principal may not read.
func Guard(inner registry.Interface) registry.Interface { return guard{inner} }

// guard does not embed the registry. Otherwise a new method of the interface would be allowed
// without a check.
type guard struct{ inner registry.Interface }

// Environments is allowed to every principal with a grant, because every command needs it.
func (g guard) Environments(ctx context.Context) (registry.Environments, error) {
	if err := granted(ctx); err != nil {
		return registry.Environments{}, err
	}
	return g.inner.Environments(ctx)
}

// granted checks that the principal has a grant, for anything.
func granted(ctx context.Context) error {
	p, err := principal(ctx)
	if err == nil && !slices.ContainsFunc(registry.Permissions(), p.MayAnywhere) {
		err = registry.Errorf(registry.CodeForbidden, "%s has no grants", p.Name)
	}
	return err
}

func (g guard) Heads(ctx context.Context, environment, model string) ([]registry.Head, error) {
	p, err := reader(ctx, environment, model)
	if err != nil {
		return nil, err
	}
	heads, err := g.inner.Heads(ctx, environment, model)
	return slices.DeleteFunc(heads, func(h registry.Head) bool {
		return !p.May(registry.PermissionRead, h.Environment, h.Model)
	}), err
}

func (g guard) Resolve(ctx context.Context, q registry.ResolveQuery) (registry.Resolution, error) {
	if err := Allow(ctx, registry.PermissionRead, q.Environment, q.Model); err != nil {
		return registry.Resolution{}, err
	}
	return g.inner.Resolve(ctx, q)
}

// History reads more events if hidden ones leave a page short. It then reads many at a time,
// since a caller with few permissions may skip a million events.
func (g guard) History(ctx context.Context, q registry.HistoryQuery) ([]registry.Event, error) {
	p, err := reader(ctx, q.Environment, q.Model)
	if err != nil {
		return nil, err
	}
	limit := q.Limit
	var seen []registry.Event
	for {
		events, err := g.inner.History(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if p.May(registry.PermissionRead, e.Environment, e.Model) && (limit == 0 || len(seen) < limit) {
				seen = append(seen, e)
			}
		}
		if limit == 0 || len(events) < q.Limit || len(seen) == limit {
			return seen, nil
		}
		q.Limit = max(limit, registry.MaxPage)
		if last := events[len(events)-1].Seq; q.Descending {
			q.Before = last
		} else {
			q.After = last
		}
	}
}

func (g guard) Publish(ctx context.Context, p registry.Publication) (registry.Head, error) {
	if _, err := principal(ctx); err != nil {
		return registry.Head{}, err
	}
	environments, err := g.inner.Environments(ctx)
	if err != nil {
		return registry.Head{}, err
	}
	if err := Allow(ctx, registry.PermissionPush, environments.First().Name, p.Model); err != nil {
		return registry.Head{}, err
	}
	return g.inner.Publish(ctx, p)
}

func (g guard) Attach(ctx context.Context, a registry.Attachment) (registry.Digest, error) {
	if _, err := principal(ctx); err != nil {
		return "", err
	}
	permission, err := attachPermission(a.Bundle)
	if err != nil {
		return "", err
	}
	if err := Allow(ctx, permission, a.Environment, a.Model); err != nil {
		return "", err
	}
	return g.inner.Attach(ctx, a)
}

// Attest checks the permission for the environment that the person speaks about. As with Promote, a
// caller who may decide about the destination may use the source.
func (g guard) Attest(ctx context.Context, r registry.AttestRequest) (registry.Attested, error) {
	if err := Allow(ctx, registry.PermissionAttest, r.Environment, r.Model); err != nil {
		return registry.Attested{}, err
	}
	return g.inner.Attest(ctx, r)
}

// Restrictions is allowed to every principal that may read a model in the environment, because what
// is restricted there concerns each.
func (g guard) Restrictions(ctx context.Context, environment string) (registry.SignedRestrictions, error) {
	p, err := principal(ctx)
	if err != nil {
		return registry.SignedRestrictions{}, err
	}
	if !p.MayIn(registry.PermissionRead, environment) {
		return registry.SignedRestrictions{}, denied(p, registry.PermissionRead, environment, "")
	}
	return g.inner.Restrictions(ctx, environment)
}

// Restrict needs the permission for every model of the environment.
func (g guard) Restrict(ctx context.Context, environment string, bundle []byte) (registry.SignedRestrictions, error) {
	if err := Allow(ctx, registry.PermissionApprove, environment, ""); err != nil {
		return registry.SignedRestrictions{}, err
	}
	return g.inner.Restrict(ctx, environment, bundle)
}

// TrustBundle is allowed to every principal with a grant, as the environments are.
func (g guard) TrustBundle(ctx context.Context) (registry.SignedTrust, error) {
	if err := granted(ctx); err != nil {
		return registry.SignedTrust{}, err
	}
	return g.inner.TrustBundle(ctx)
}

// PublishTrust concerns every environment.
func (g guard) PublishTrust(ctx context.Context, bundle []byte) (registry.SignedTrust, error) {
	if err := Allow(ctx, registry.PermissionAdminister, "", ""); err != nil {
		return registry.SignedTrust{}, err
	}
	return g.inner.PublishTrust(ctx, bundle)
}

// Promote checks the permission for the destination only. A caller who may decide about the
// destination may use the source.
func (g guard) Promote(ctx context.Context, r registry.PromoteRequest) (registry.Promotion, error) {
	if _, err := principal(ctx); err != nil {
		return registry.Promotion{}, err
	}
	environments, err := g.inner.Environments(ctx)
	if err != nil {
		return registry.Promotion{}, err
	}
	_, to, err := environments.Edge(r.From, r.To)
	if err != nil {
		return registry.Promotion{}, err
	}
	if err := Allow(ctx, registry.PermissionPromote, to.Name, r.Model); err != nil {
		return registry.Promotion{}, err
	}
	return g.inner.Promote(ctx, r)
}

func (g guard) Rollback(ctx context.Context, r registry.RollbackRequest) (registry.Promotion, error) {
	if err := Allow(ctx, registry.PermissionPromote, r.Environment, r.Model); err != nil {
		return registry.Promotion{}, err
	}
	return g.inner.Rollback(ctx, r)
}

func (g guard) SetHold(ctx context.Context, environment, model, reason string) error {
	if err := Allow(ctx, registry.PermissionPromote, environment, model); err != nil {
		return err
	}
	return g.inner.SetHold(ctx, environment, model, reason)
}

func (g guard) ReleaseHold(ctx context.Context, r registry.HoldRelease) error {
	if err := Allow(ctx, registry.PermissionPromote, r.Environment, r.Model); err != nil {
		return err
	}
	return g.inner.ReleaseHold(ctx, r)
}

// HistoryFaults returns only faults that the caller may read.
func (g guard) HistoryFaults(ctx context.Context) ([]registry.HistoryFault, error) {
	p, err := reader(ctx, "", "")
	if err != nil {
		return nil, err
	}
	faults, err := g.inner.HistoryFaults(ctx)
	return slices.DeleteFunc(faults, func(f registry.HistoryFault) bool {
		return !p.May(registry.PermissionRead, f.Environment, f.Model)
	}), err
}

func (g guard) AcceptHistory(ctx context.Context, environment, model, reason string) error {
	if err := Allow(ctx, registry.PermissionAdminister, environment, model); err != nil {
		return err
	}
	return g.inner.AcceptHistory(ctx, environment, model, reason)
}

func (g guard) Release(ctx context.Context, environment, model, tagOrDigest string) (registry.Release, error) {
	if err := Allow(ctx, registry.PermissionRead, environment, model); err != nil {
		return registry.Release{}, err
	}
	return g.inner.Release(ctx, environment, model, tagOrDigest)
}

func (g guard) Claims(
	ctx context.Context,
	environment string,
	r registry.Release,
) ([]registry.Claim, registry.IgnoredEvidence, error) {
	if err := Allow(ctx, registry.PermissionRead, environment, r.Model); err != nil {
		return nil, registry.IgnoredEvidence{}, err
	}
	return g.inner.Claims(ctx, environment, r)
}

func (g guard) Engine(ctx context.Context, environment, model string, d registry.Digest) (registry.Engine, error) {
	if err := Allow(ctx, registry.PermissionRead, environment, model); err != nil {
		return registry.Engine{}, err
	}
	return g.inner.Engine(ctx, environment, model, d)
}

func (g guard) Bundle(ctx context.Context, environment, model string, d registry.Digest) (registry.Bundle, error) {
	if err := Allow(ctx, registry.PermissionRead, environment, model); err != nil {
		return registry.Bundle{}, err
	}
	return g.inner.Bundle(ctx, environment, model, d)
}

// Models leaves out models that the caller may not read, so a page may be short. It is then partial.
func (g guard) Models(
	ctx context.Context,
	environment, after string,
	limit int,
) (registry.Page[registry.ModelHeads], error) {
	p, err := reader(ctx, environment, "")
	if err != nil {
		return registry.Page[registry.ModelHeads]{}, err
	}
	page, err := g.inner.Models(ctx, environment, after, limit)
	for i, m := range page.Items {
		all := len(m.Heads)
		page.Items[i].Heads = slices.DeleteFunc(m.Heads, func(h registry.Head) bool {
			return !p.May(registry.PermissionRead, h.Environment, h.Model)
		})
		page.Partial = page.Partial || len(page.Items[i].Heads) < all
	}
	page.Items = slices.DeleteFunc(page.Items, func(m registry.ModelHeads) bool { return len(m.Heads) == 0 })
	return page, err
}

func (g guard) Releases(
	ctx context.Context,
	environment, model, after string,
	limit int,
) (registry.Page[registry.TaggedRelease], error) {
	if err := Allow(ctx, registry.PermissionRead, environment, model); err != nil {
		return registry.Page[registry.TaggedRelease]{}, err
	}
	return g.inner.Releases(ctx, environment, model, after, limit)
}

// reader returns the principal that reads a list. For the list of one model it must have the
// permission for that model.
func reader(ctx context.Context, environment, model string) (registry.Principal, error) {
	p, err := principal(ctx)
	switch {
	case err != nil:
		return registry.Principal{}, err
	case environment != "" && model != "":
		return p, Allow(ctx, registry.PermissionRead, environment, model)
	case !p.MayAnywhere(registry.PermissionRead):
		return registry.Principal{}, registry.Errorf(registry.CodeForbidden, "%s may not read: no grant allows it", p.Name)
	}
	return p, nil
}
