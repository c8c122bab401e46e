package access

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry/storage"
)

// GuardNodes lets callers report nodes, and see reports, of models that they may read: a caller that may pull an engine may
// report it. Each report names its caller, and replaces only reports of the same one.
func GuardNodes(inner storage.NodeReporter) storage.NodeReporter { return guardedNodes{inner} }

type guardedNodes struct{ inner storage.NodeReporter }

func (g guardedNodes) ReportNode(ctx context.Context, r storage.NodeReport) (storage.NodeReport, error) {
	if err := Allow(ctx, storage.PermissionRead, r.Environment, r.Model); err != nil {
		return storage.NodeReport{}, err
	}
	return g.inner.ReportNode(ctx, r)
}

// NodeReports leaves out models that the caller may not read. A page that leaves out some is partial, and begins after
// a report that the caller may see: a cursor must not say the names of others.
func (g guardedNodes) NodeReports(ctx context.Context, environment, model, after string, limit int) (storage.Page[storage.NodeReport], error) {
	return g.list(ctx, g.inner.NodeReports, environment, model, after, limit)
}

// SilentNodes leaves out the same.
func (g guardedNodes) SilentNodes(ctx context.Context, environment, model, after string, limit int) (storage.Page[storage.NodeReport], error) {
	return g.list(ctx, g.inner.SilentNodes, environment, model, after, limit)
}

func (g guardedNodes) list(
	ctx context.Context, from func(ctx context.Context, environment, model, after string, limit int) (storage.Page[storage.NodeReport], error),
	environment, model, after string, limit int,
) (storage.Page[storage.NodeReport], error) {
	p, err := reader(ctx, environment, model)
	if err == nil && !p.MayIn(storage.PermissionRead, environment) {
		err = denied(p, storage.PermissionRead, environment, model)
	}
	if err != nil {
		return storage.Page[storage.NodeReport]{}, err
	}
	for partial := false; ; {
		page, err := from(ctx, environment, model, after, limit)
		if err != nil {
			return storage.Page[storage.NodeReport]{}, err
		}
		all := len(page.Items)
		page.Items = slices.DeleteFunc(page.Items, func(r storage.NodeReport) bool { return !p.May(storage.PermissionRead, r.Environment, r.Model) })
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
