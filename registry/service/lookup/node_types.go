package lookup

import (
	"context"
	"errors"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// NodeTypes reads all registered node types.
func NodeTypes(ctx context.Context, s *backend.Backend) ([]registry.Named[artifact.Node], error) {
	if s.NodeTypes == nil {
		return nil, nil
	}
	var all []registry.Named[artifact.Node]
	for t, err := range storage.Rows(ctx, s.NodeTypes, "") {
		if err != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		all = append(all, t)
	}
	return all, nil
}

// KnownNodeTypes reads all node types, and their digest. Without a table they are unknown.
func KnownNodeTypes(ctx context.Context, s *backend.Backend) (policy.KnownNodeTypes, registry.Digest, error) {
	all, err := NodeTypes(ctx, s)
	if err != nil || s.NodeTypes == nil {
		return policy.KnownNodeTypes{}, "", err
	}
	known := policy.NewKnownNodeTypes(all)
	d, err := known.Digest()
	return known, d, err
}

// SameNodeTypes checks that the node types are those on which a decision rests, if it rests on any. The
// catalog compares those that are stored once more when it applies the change.
func SameNodeTypes(ctx context.Context, s *backend.Backend, g history.DecisionBasis) error {
	if g.OnNodeTypes == "" {
		return nil
	}
	now, _, err := KnownNodeTypes(ctx, s)
	if err != nil {
		return err
	}
	return g.SameNodeTypes(now)
}
