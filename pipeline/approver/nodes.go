package approver

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
)

// AddNodes adds to each place the nodes that report that they have what was attached to. An older service lists none.
func (q Quarantiner) AddNodes(ctx context.Context, attached []Attached, from storage.NodeReporter) error {
	for i, a := range attached {
		reports, err := nodesOf(ctx, from, a.Environment, a.Model)
		if err != nil {
			return err
		}
		for _, r := range reports {
			if r.Release == a.Subject.Digest || r.Engine == a.Subject.Digest {
				attached[i].Nodes = append(attached[i].Nodes, r)
			}
		}
	}
	return nil
}

// nodesOf lists reports, and those of nodes that fell silent: whoever makes a node say nothing must not take it off the list.
func nodesOf(ctx context.Context, from storage.NodeReporter, environment, model string) ([]storage.NodeReport, error) {
	reports, err := storage.AllNodeReports(ctx, from, environment, model)
	if err != nil {
		return nil, err
	}
	silent, err := storage.AllSilentNodes(ctx, from, environment, model)
	return append(reports, silent...), err
}

// addNodes adds the nodes of an environment that report an engine which is restricted, at a head or not. A release that is no
// longer there, or that cannot be read, counts as restricted: nothing says what it was made from.
func (r Restricter) addNodes(ctx context.Context, signed restriction.SignedRestrictions, out *Restricted) error {
	reports, err := nodesOf(ctx, r.Nodes, signed.Environment, "")
	if err != nil {
		return err
	}
	known := make(map[string]map[registry.Digest]bool) // by model and release: its engines that are restricted
	for _, n := range reports {
		key := n.Model + "@" + string(n.Release)
		engines, ok := known[key]
		if !ok {
			engines, err = r.restrictedEngines(ctx, signed, n)
			if err != nil && !registry.IsUnreadable(err) {
				return err
			}
			if err != nil && !registry.HasCode(err, registry.CodeNotFound) {
				out.unread(n.Model, n.Release, err)
			}
			known[key] = engines
		}
		if engines == nil || engines[n.Engine] {
			out.Nodes = append(out.Nodes, n)
		}
	}
	return nil
}

// restrictedEngines lists the restricted engines of the release of a report.
func (r Restricter) restrictedEngines(ctx context.Context, signed restriction.SignedRestrictions,
	n storage.NodeReport) (map[registry.Digest]bool, error) {
	release, err := r.Registry.Release(ctx, n.Environment, n.Model, string(n.Release))
	if err != nil {
		return nil, err
	}
	claims, _, err := r.Registry.Claims(ctx, n.Environment, release)
	if err != nil {
		return nil, err
	}
	restricted := make(map[registry.Digest]bool)
	for _, e := range release.Engines {
		if len(signed.Affects(release, e, claims)) > 0 {
			restricted[e.Digest] = true
		}
	}
	return restricted, nil
}
