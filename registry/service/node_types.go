package service

import (
	"context"
	"errors"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
)

// nodeTypes reads all registered node types.
func (s *Service) nodeTypes(ctx context.Context) ([]registry.Named[registry.Node], error) {
	if s.NodeTypes == nil {
		return nil, nil
	}
	var all []registry.Named[registry.Node]
	for t, err := range registry.Rows(ctx, s.NodeTypes, "") {
		if err != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		all = append(all, t)
	}
	return all, nil
}

// tellNodes adds to a promotion which engine each node type would get. It never fails, since no decision rests on it.
func (s *Service) tellNodes(ctx context.Context, m move, p *registry.Promotion) {
	if m.standing == nil {
		return
	}
	all, err := s.nodeTypes(ctx)
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
	all, err := s.nodeTypes(ctx)
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
