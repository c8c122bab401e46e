package api

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// These functions answer callers that may not read everything.

func readableHeads(ctx context.Context, r registry.Interface, p registry.Principal, q HeadsQuery) ([]registry.Head, error) {
	heads, err := r.Heads(ctx, q.Environment, q.Model)
	return slices.DeleteFunc(heads, hidden(p)), err
}

func hidden(p registry.Principal) func(registry.Head) bool {
	return func(h registry.Head) bool { return !p.May(registry.PermissionRead, h.Environment, h.Model) }
}

// readableHistory reads more events if hidden ones leave a page short. It then reads many at a time,
// since a caller with few permissions may skip a million events.
func readableHistory(ctx context.Context, r registry.Interface, p registry.Principal, q registry.HistoryQuery) ([]registry.Event, error) {
	limit := q.Limit
	var seen []registry.Event
	for {
		events, err := r.History(ctx, q)
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

func readableFaults(ctx context.Context, r registry.Interface, p registry.Principal, _ None) ([]registry.HistoryFault, error) {
	faults, err := r.HistoryFaults(ctx)
	return slices.DeleteFunc(faults, func(f registry.HistoryFault) bool {
		return !p.May(registry.PermissionRead, f.Environment, f.Model)
	}), err
}

// readableModels leaves out models that the caller may not read, so a page may be short. It is then partial.
func readableModels(ctx context.Context, r registry.Interface, p registry.Principal, q ModelsQuery) (registry.Page[registry.ModelHeads], error) {
	page, err := r.Models(ctx, q.Environment, q.Cursor, q.Limit)
	for i, m := range page.Items {
		all := len(m.Heads)
		page.Items[i].Heads = slices.DeleteFunc(m.Heads, hidden(p))
		page.Partial = page.Partial || len(page.Items[i].Heads) < all
	}
	page.Items = slices.DeleteFunc(page.Items, func(m registry.ModelHeads) bool { return len(m.Heads) == 0 })
	return page, err
}
