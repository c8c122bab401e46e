package service

import (
	"context"
	"errors"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
)

// leftWithout returns warnings about what a rollback takes from nodes: engines that resolve
// refuses, and node types (or the caller's node) that have an engine at the head but not in the
// release. It never fails; what it cannot read becomes a warning.
func (s *Service) leftWithout(ctx context.Context, m *retreat, head registry.Head, r registry.Release) []string {
	d, err := s.resolvable(ctx, m.environment, r.Model, string(r.Digest))
	if err != nil {
		return []string{fmt.Sprintf("resolve will not answer with %s: %v", r.Tag(), err)}
	}
	warnings := d.refused()
	now, err := s.Release(ctx, m.Environment, m.Model, string(head.Release))
	if err != nil {
		return append(
			warnings,
			fmt.Sprintf("%s, the current head, cannot be read, so the nodes that lose their engine are unknown: %v",
				head.Version, err),
		)
	}
	warn := func(name string, node registry.Node) {
		if !anyMatches(now, node) {
			return
		}
		_, err := d.choose(m.environment, registry.ResolveQuery{Environment: m.Environment, Model: m.Model, Node: node})
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s has an engine in %s, but not in %s: %v", name, now.Tag(), r.Tag(), err))
		}
	}
	if m.Node != nil {
		warn("this node", *m.Node)
	}
	if err := s.eachNodeType(ctx, func(name string, node registry.Node) { warn("node type "+name, node) }); err != nil {
		warnings = append(warnings,
			fmt.Sprintf("the node types cannot be read, so those that lose their engine are unknown: %v", err))
	}
	return warnings
}

// refused lists the engines that resolve refuses on every node.
func (d resolvable) refused() []string {
	var warnings []string
	for _, e := range d.engines {
		if len(e.unmet) > 0 {
			warnings = append(warnings,
				fmt.Sprintf("resolve refuses %s of %s on every node: %s", e.Label(), d.release.Tag(), e.unmet[0]))
		}
	}
	return warnings
}

// anyMatches reports whether any engine of a release runs on the node.
func anyMatches(r registry.Release, node registry.Node) bool {
	for _, e := range r.Engines {
		if len(e.Target.Match(node, node.Runtime())) == 0 {
			return true
		}
	}
	return false
}

// eachNodeType calls visit for every registered node type.
func (s *Service) eachNodeType(ctx context.Context, visit func(name string, node registry.Node)) error {
	if s.NodeTypes == nil {
		return nil
	}
	for after := ""; ; {
		page, err := s.NodeTypes.List(ctx, after, registry.MaxPage)
		if err != nil {
			return errors.Join(err, ctx.Err())
		}
		for _, n := range page {
			visit(n.Name, n.Document)
			after = n.Name
		}
		if len(page) < registry.MaxPage {
			return nil
		}
	}
}
