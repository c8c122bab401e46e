package rollback

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/lookup"
	"mlpromote.dev/mlpromote/registry/service/resolution"
)

// consequences returns what a rollback changes for nodes: warnings about engines that resolve refuses
// and about nodes that have an engine at the head but not in the release, and the node types (and the
// caller's node) that get another engine. It never fails; what it cannot read becomes a warning.
func consequences(
	ctx context.Context, s *backend.Backend, req api.RollbackRequest, environment policy.Environment, head history.Head, r artifact.Release,
) (warnings []string, changes []api.NodeChange) {
	then, err := resolution.Read(ctx, s, environment, r.Model, string(r.Digest))
	if err != nil {
		return []string{fmt.Sprintf("resolve will not answer with %s: %v", r.Tag(), err)}, nil
	}
	warnings = then.Refused()
	now, err := lookup.Release(ctx, s, req.Environment, req.Model, string(head.Release))
	if err != nil {
		return append(
			warnings,
			fmt.Sprintf("%s, the current head, cannot be read, so the nodes that lose their engine are unknown: %v",
				head.Version, err),
		), nil
	}
	// Where the head itself may not be used any more, no node has an engine now.
	current, err := resolution.Read(ctx, s, environment, req.Model, string(head.Release))
	known := err == nil || registry.HasCode(err, registry.CodePolicy)
	if !known {
		warnings = append(warnings, fmt.Sprintf("which engines nodes get of %s, the current head, is unknown: %v", head.Version, err))
	}
	visit := func(name string, node artifact.Node) {
		q := api.ResolveQuery{Environment: req.Environment, Model: req.Model, Node: node}
		was, _ := current.Choose(environment, q)
		will, err := then.Choose(environment, q)
		if err != nil && anyMatches(now, node) {
			warnings = append(warnings, fmt.Sprintf("%s has an engine in %s, but not in %s: %v", name, now.Tag(), r.Tag(), err))
		}
		if change := nodeChange(name, was.Engine, will.Engine); known && change.FromEngine != change.ToEngine {
			changes = append(changes, change)
		}
	}
	if req.Node != nil {
		visit("this node", *req.Node)
	}
	types, err := lookup.NodeTypes(ctx, s)
	if err != nil {
		warnings = append(warnings,
			fmt.Sprintf("the node types cannot be read, so those that lose their engine are unknown: %v", err))
	}
	for _, t := range types {
		visit("node type "+t.Name, t.Document)
	}
	return warnings, changes
}

// nodeChange compares two engines of a node, of which either can be missing.
func nodeChange(name string, from, to *artifact.Engine) api.NodeChange {
	change := api.NodeChange{Node: name}
	if from != nil {
		change.From, change.FromEngine = from.Label(), from.Digest
	}
	if to != nil {
		change.To, change.ToEngine = to.Label(), to.Digest
	}
	return change
}

// anyMatches reports whether any engine of a release runs on the node.
func anyMatches(r artifact.Release, node artifact.Node) bool {
	for _, e := range r.Engines {
		if len(e.Target.Match(node, node.Runtime())) == 0 {
			return true
		}
	}
	return false
}
