package service

import (
	"context"
	"errors"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
)

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

// tellNodes adds to a promotion which engine each node type would get. It never fails, since no decision rests on it.
func (s *Service) tellNodes(ctx context.Context, m move, p *registry.Promotion) {
	if m.standing == nil {
		return
	}
	var all []registry.Named[registry.Node]
	err := s.eachNodeType(ctx, func(name string, node registry.Node) {
		all = append(all, registry.Named[registry.Node]{Name: name, Document: node})
	})
	if err != nil {
		p.Warnings = append(p.Warnings, fmt.Sprintf("the node types cannot be read, so what they get is unknown: %v", err))
		return
	}
	if len(all) > 0 {
		p.NodesGet = m.release.NodesGet(all, m.standing)
	}
}

// knownNodeTypes reads all node types, and their digest. Without a table they are unknown.
func (s *Service) knownNodeTypes(ctx context.Context) (registry.KnownNodeTypes, registry.Digest, error) {
	var all []registry.Named[registry.Node]
	err := s.eachNodeType(ctx, func(name string, node registry.Node) {
		all = append(all, registry.Named[registry.Node]{Name: name, Document: node})
	})
	if err != nil || s.NodeTypes == nil {
		return registry.KnownNodeTypes{}, "", err
	}
	known := registry.NewKnownNodeTypes(all)
	d, err := known.Digest()
	return known, d, err
}

// sameNodeTypes checks that the node types are those on which a decision rests, if it rests on any. The
// catalog compares those that are stored once more when it applies the change.
func (s *Service) sameNodeTypes(ctx context.Context, g registry.DecisionBasis) error {
	if g.OnNodeTypes == "" {
		return nil
	}
	now, _, err := s.knownNodeTypes(ctx)
	if err != nil {
		return err
	}
	return g.SameNodeTypes(now)
}
