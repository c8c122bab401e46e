package access

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// GuardNodes lets callers report nodes, and see reports, where they may read the model: who may pull an engine may
// say that it has it. Each report names its caller, and replaces only reports of the same one.
func GuardNodes(inner registry.NodeReporter) registry.NodeReporter { return guardedNodes{inner} }

type guardedNodes struct{ inner registry.NodeReporter }

func (g guardedNodes) ReportNode(ctx context.Context, r registry.NodeReport) (registry.NodeReport, error) {
	if err := Allow(ctx, registry.PermissionRead, r.Environment, r.Model); err != nil {
		return registry.NodeReport{}, err
	}
	return g.inner.ReportNode(ctx, r)
}

// NodeReports leaves out models that the caller may not read. A page that leaves out some is partial, and begins after
// a report that the caller may see: a cursor must not say the names of others.
func (g guardedNodes) NodeReports(ctx context.Context, environment, model, after string, limit int) (registry.Page[registry.NodeReport], error) {
	return g.list(ctx, g.inner.NodeReports, environment, model, after, limit)
}

// SilentNodes leaves out the same.
func (g guardedNodes) SilentNodes(ctx context.Context, environment, model, after string, limit int) (registry.Page[registry.NodeReport], error) {
	return g.list(ctx, g.inner.SilentNodes, environment, model, after, limit)
}

func (g guardedNodes) list(
	ctx context.Context, from func(ctx context.Context, environment, model, after string, limit int) (registry.Page[registry.NodeReport], error),
	environment, model, after string, limit int,
) (registry.Page[registry.NodeReport], error) {
	p, err := reader(ctx, environment, model)
	if err == nil && !p.MayIn(registry.PermissionRead, environment) {
		err = denied(p, registry.PermissionRead, environment, model)
	}
	if err != nil {
		return registry.Page[registry.NodeReport]{}, err
	}
	for partial := false; ; {
		page, err := from(ctx, environment, model, after, limit)
		if err != nil {
			return registry.Page[registry.NodeReport]{}, err
		}
		all := len(page.Items)
		page.Items = slices.DeleteFunc(page.Items, func(r registry.NodeReport) bool { return !p.May(registry.PermissionRead, r.Environment, r.Model) })
		partial = partial || len(page.Items) < all
		page.Partial = partial
		switch {
		case page.Next == "":
			return page, nil
		case len(page.Items) > 0:
			page.Next = page.Items[len(page.Items)-1].Name()
			return page, nil
		}
		after = page.Next
	}
}
