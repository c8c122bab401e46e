package access

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// Preview wraps a previewer and checks that the context's principal may read the model in both
// environments of the promotion, since the decision tells of the evidence in each. environments
// returns those that the previewer decides by.
func Preview(
	inner registry.Previewer, environments func(context.Context) (registry.Environments, error),
) registry.Previewer {
	return guardedPreview{inner, environments}
}

type guardedPreview struct {
	inner        registry.Previewer
	environments func(context.Context) (registry.Environments, error)
}

func (g guardedPreview) Preview(ctx context.Context, r registry.PromoteRequest) (registry.Promotion, error) {
	if _, err := principal(ctx); err != nil {
		return registry.Promotion{}, err
	}
	environments, err := g.environments(ctx)
	if err != nil {
		return registry.Promotion{}, err
	}
	from, to, err := environments.Edge(r.From, r.To)
	if err != nil {
		return registry.Promotion{}, err
	}
	for _, e := range []registry.Environment{from, to} {
		if err := Allow(ctx, registry.PermissionRead, e.Name, r.Model); err != nil {
			return registry.Promotion{}, err
		}
	}
	return g.inner.Preview(ctx, r)
}

func (g guardedPreview) PreviewRollback(ctx context.Context, r registry.RollbackRequest) (registry.Promotion, error) {
	if err := Allow(ctx, registry.PermissionRead, r.Environment, r.Model); err != nil {
		return registry.Promotion{}, err
	}
	return g.inner.PreviewRollback(ctx, r)
}

func (g guardedPreview) Standing(ctx context.Context, environment, model string) ([]registry.Candidate, error) {
	if err := Allow(ctx, registry.PermissionRead, environment, model); err != nil {
		return nil, err
	}
	return g.inner.Standing(ctx, environment, model)
}
