package rest

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// These functions answer callers that may not read everything.

// readableHeads refuses a list of an environment of which the caller may read nothing: an empty one would look like an empty environment.
func readableHeads(ctx context.Context, r api.Interface, p storage.Principal, q HeadsQuery) ([]history.Head, error) {
	if q.Environment != "" && !p.MayIn(storage.PermissionRead, q.Environment) {
		return nil, registry.WithHint(registry.Errorf(registry.CodeForbidden, "%s may not read anything in %s: no grant allows it", p.Name, q.Environment),
			"an administrator can make a token with --allow read --env %s --model '**'", q.Environment)
	}
	heads, err := r.Heads(ctx, q.Environment, q.Model)
	return slices.DeleteFunc(heads, hidden(p)), err
}

func hidden(p storage.Principal) func(history.Head) bool {
	return func(h history.Head) bool { return !p.May(storage.PermissionRead, h.Environment, h.Model) }
}

// readableHistory reads more events if hidden ones leave a page short. It then reads many at a time,
// since a caller with few permissions may skip a million events.
func readableHistory(ctx context.Context, r api.Interface, p storage.Principal, q history.HistoryQuery) ([]history.Event, error) {
	limit := q.Limit
	var seen []history.Event
	for {
		events, err := r.History(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if p.May(storage.PermissionRead, e.Environment, e.Model) && (limit == 0 || len(seen) < limit) {
				seen = append(seen, e)
			}
		}
		if limit == 0 || len(events) < q.Limit || len(seen) == limit {
			return seen, nil
		}
		q.Limit = max(limit, storage.MaxPage)
		if last := events[len(events)-1].Seq; q.Descending {
			q.Before = last
		} else {
			q.After = last
		}
	}
}

func readableFaults(ctx context.Context, r api.Interface, p storage.Principal, _ None) ([]history.HistoryFault, error) {
	faults, err := r.HistoryFaults(ctx)
	return slices.DeleteFunc(faults, func(f history.HistoryFault) bool {
		return !p.May(storage.PermissionRead, f.Environment, f.Model)
	}), err
}

// readableModels leaves out models that the caller may not read, so a page may be short. It is then partial.
func readableModels(ctx context.Context, r api.Interface, p storage.Principal, q ModelsQuery) (storage.Page[history.ModelHeads], error) {
	page, err := r.Models(ctx, q.Environment, q.Cursor, q.Limit)
	for i, m := range page.Items {
		all := len(m.Heads)
		page.Items[i].Heads = slices.DeleteFunc(m.Heads, hidden(p))
		page.Partial = page.Partial || len(page.Items[i].Heads) < all
	}
	page.Items = slices.DeleteFunc(page.Items, func(m history.ModelHeads) bool { return len(m.Heads) == 0 })
	return page, err
}
