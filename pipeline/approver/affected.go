package approver

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
)

// describe finds the heads, engines and node types that the restrictions of an environment concern.
func (r Restricter) describe(ctx context.Context, signed restriction.SignedRestrictions) (Restricted, error) {
	out := Restricted{
		Environment: signed.Environment, Counter: signed.List.Counter, List: signed.Digest, Signer: signed.Signer,
		InForce: append([]evidence.Restriction{}, signed.InForce...), Heads: []RestrictedHead{},
	}
	if len(signed.InForce) == 0 {
		return out, nil
	}
	types, err := r.nodeTypes(ctx)
	if err != nil {
		return out, err
	}
	heads, err := r.Registry.Heads(ctx, signed.Environment, "")
	if err != nil {
		return out, err
	}
	for _, head := range heads {
		found, err := r.affected(ctx, signed, head, types)
		switch {
		case registry.IsUnreadable(err):
			out.unread(head.Model, head.Release, err)
		case err != nil:
			return out, err
		case len(found.Engines) > 0:
			out.Heads = append(out.Heads, found)
		}
	}
	return out, r.addNodes(ctx, signed, &out)
}

// affected finds what is restricted at one head.
func (r Restricter) affected(ctx context.Context, signed restriction.SignedRestrictions,
	head history.Head, types []registry.Named[artifact.Node]) (RestrictedHead, error) {
	found := RestrictedHead{Model: head.Model, Version: head.Version, Release: head.Release}
	release, err := r.Registry.Release(ctx, head.Environment, head.Model, string(head.Release))
	if err != nil {
		return found, err
	}
	claims, _, err := r.Registry.Claims(ctx, head.Environment, release)
	if err != nil {
		return found, err
	}
	restricted := make(map[registry.Digest]bool)
	for _, e := range release.Engines {
		matches := signed.Affects(release, e, claims)
		if len(matches) == 0 {
			continue
		}
		restricted[e.Digest] = true
		engine := RestrictedEngine{Engine: e.Digest, Label: e.Label()}
		for _, m := range matches {
			engine.Reasons = append(engine.Reasons, fmt.Sprintf("%s, and %s is restricted", m.Why, m.Restriction))
		}
		found.Engines = append(found.Engines, engine)
	}
	for _, t := range types {
		if affected, ok := loses(release, t, restricted); ok {
			found.NodeTypes = append(found.NodeTypes, affected)
		}
	}
	return found, nil
}

// loses reports whether the best engine of a node type is restricted, and which comes next. It looks
// at targets alone.
func loses(r artifact.Release, t registry.Named[artifact.Node], restricted map[registry.Digest]bool) (AffectedNodeType, bool) {
	found := AffectedNodeType{Name: t.Name}
	for _, e := range r.Ranked() {
		if !policy.FitOn(e, t.Document, nil).Fits() {
			continue
		}
		if found.Engine == "" {
			if !restricted[e.Digest] {
				return found, false
			}
			found.Engine = e.Label()
		}
		if !restricted[e.Digest] {
			found.Instead = e.Label()
			break
		}
	}
	return found, found.Engine != ""
}

// nodeTypes reads all node types.
func (r Restricter) nodeTypes(ctx context.Context) ([]registry.Named[artifact.Node], error) {
	var all []registry.Named[artifact.Node]
	for t, err := range storage.Rows(ctx, r.NodeTypes, "") {
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}
