package service

import (
	"context"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// NodeReports takes what nodes report, and lists it. It decides nothing by it.
type NodeReports struct {
	Table     storage.NodeReports
	Inspector api.Inspector        // has the releases that nodes name
	Clock     storage.CatalogClock // of when reports expire
	Life      time.Duration        // of a report; 0: no reports are taken
}

var _ storage.NodeReporter = NodeReports{}

// ReportNode stores the report of a caller about a node. Of reports that come at the same time, a few more than
// [storage.MaxNodeReports] may be stored.
func (n NodeReports) ReportNode(ctx context.Context, r storage.NodeReport) (storage.NodeReport, error) {
	if n.Life <= 0 {
		return r, registry.WithHint(registry.Lastingf(registry.CodeUnavailable, "this registry takes no reports of nodes"),
			"its operator turns them on with mlpromote serve --node-reports 24h, which says how long a report counts")
	}
	if err := r.Validate(); err != nil {
		return r, err
	}
	release, err := n.Inspector.Release(ctx, r.Environment, r.Model, string(r.Release))
	if err != nil {
		return r, err
	}
	at := slices.IndexFunc(release.Engines, func(e artifact.Engine) bool { return e.Digest == r.Engine })
	if at < 0 {
		return r, registry.Errorf(registry.CodeNotFound, "node report: %s:%s in %s has no engine %s", r.Model, release.Tag(), r.Environment, r.Engine)
	}
	now, err := n.Clock.CatalogTime(ctx)
	if err != nil {
		return r, err
	}
	caller, _ := storage.PrincipalOf(ctx)
	r = r.Bound()
	r.Version, r.Label, r.Reporter = release.Tag(), release.Engines[at].Label(), caller.Name
	r.ReportedOn, r.ExpiresOn = now.UTC(), now.UTC().Add(n.Life)
	if _, err := n.Table.Get(ctx, r.Name()); registry.HasCode(err, registry.CodeNotFound) {
		if err := n.makeRoom(ctx, r, now); err != nil {
			return r, err
		}
	} else if err != nil {
		return r, err
	}
	return r, n.Table.Put(ctx, r.Name(), r)
}

// makeRoom refuses one too many of a caller. Silent nodes of the caller are forgotten early where that makes room, but for machines
// that proved themselves: whoever has their token must not take them off the list by filling it.
func (n NodeReports) makeRoom(ctx context.Context, r storage.NodeReport, now time.Time) error {
	prefix := storage.NodeReportsBy(r.Environment, r.Model, r.Reporter)
	mine, err := n.Table.CountNames(ctx, prefix, storage.MaxNodeReports)
	if err != nil || mine < storage.MaxNodeReports {
		return err
	}
	freed, err := n.remove(ctx, prefix, func(there storage.NodeReport) bool { return there.Expired(now) && there.Machine == "" })
	if err != nil || freed > 0 {
		return err
	}
	return registry.Lastingf(registry.CodeFull, "node report: %s reported %d nodes with %s in %s already: want a token for each part of the fleet",
		r.Reporter, mine, r.Model, r.Environment)
}

// Expire deletes all reports that may be forgotten, also those of models of which no node speaks any more. It returns how many.
func (n NodeReports) Expire(ctx context.Context) (int, error) {
	now, err := n.Clock.CatalogTime(ctx)
	if err != nil {
		return 0, err
	}
	return n.remove(ctx, "", func(there storage.NodeReport) bool { return there.Forgotten(now) })
}

// remove deletes reports whose names have a prefix, and returns how many. One that comes again meanwhile stays.
func (n NodeReports) remove(ctx context.Context, prefix string, which func(storage.NodeReport) bool) (int, error) {
	deleted := 0
	err := n.each(ctx, prefix, "", func(name string, r storage.NodeReport) (bool, error) {
		if !which(r) {
			return true, nil
		}
		gone, err := n.Table.DeleteSame(ctx, registry.Named[storage.NodeReport]{Name: name, Document: r})
		if gone {
			deleted++
		}
		return true, err
	})
	return deleted, err
}

// each reads reports whose names have a prefix, after one of them, until do says that it is enough.
func (n NodeReports) each(ctx context.Context, prefix, after string, do func(name string, r storage.NodeReport) (more bool, err error)) error {
	if after == "" {
		after = prefix
	}
	for d, err := range storage.Rows(ctx, n.Table, after) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(d.Name, prefix) {
			return nil
		}
		if more, err := do(d.Name, d.Document); err != nil || !more {
			return err
		}
	}
	return nil
}

// NodeReports lists the reports that count.
func (n NodeReports) NodeReports(ctx context.Context, environment, model, after string, limit int) (storage.Page[storage.NodeReport], error) {
	return n.list(ctx, environment, model, after, limit, func(r storage.NodeReport, now time.Time) bool { return !r.Expired(now) })
}

// SilentNodes lists the reports that have expired and are not forgotten.
func (n NodeReports) SilentNodes(ctx context.Context, environment, model, after string, limit int) (storage.Page[storage.NodeReport], error) {
	return n.list(ctx, environment, model, after, limit, func(r storage.NodeReport, now time.Time) bool { return r.Expired(now) && !r.Forgotten(now) })
}

// list lists a page of the reports that are wanted.
func (n NodeReports) list(
	ctx context.Context, environment, model, after string, limit int, wanted func(r storage.NodeReport, now time.Time) bool,
) (storage.Page[storage.NodeReport], error) {
	var found storage.Page[storage.NodeReport]
	prefix := storage.NodeReportsOf(environment, model)
	if environment == "" || strings.Contains(environment, "/") || after != "" && !strings.HasPrefix(after, prefix) {
		return found, registry.Errorf(registry.CodeInvalid, "node reports: want an environment, and the cursor of a page of the same list")
	}
	now, err := n.Clock.CatalogTime(ctx)
	if err != nil {
		return found, err
	}
	last := ""
	err = n.each(ctx, prefix, after, func(name string, r storage.NodeReport) (bool, error) {
		if !wanted(r, now) {
			return true, nil
		}
		if len(found.Items) == storage.PageLimit(limit) {
			found.Next = last
			return false, nil
		}
		r.Silent = r.Expired(now)
		found.Items, last = append(found.Items, r), name
		return true, nil
	})
	return found, err
}
