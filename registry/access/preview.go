package access

import (
	"context"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Preview wraps a previewer and checks that the context's principal may read the model in both
// environments of the promotion, since the decision tells of the evidence in each. environments
// returns those that the previewer decides by.
func Preview(
	inner api.Previewer, environments func(context.Context) (policy.Environments, error),
) api.Previewer {
	return guardedPreview{inner, environments}
}

type guardedPreview struct {
	inner        api.Previewer
	environments func(context.Context) (policy.Environments, error)
}

func (g guardedPreview) Preview(ctx context.Context, r api.PromoteRequest) (api.Promotion, error) {
	if _, err := principal(ctx); err != nil {
		return api.Promotion{}, err
	}
	environments, err := g.environments(ctx)
	if err != nil {
		return api.Promotion{}, err
	}
	from, to, err := environments.Edge(r.From, r.To)
	if err != nil {
		return api.Promotion{}, err
	}
	for _, e := range []policy.Environment{from, to} {
		if err := Allow(ctx, storage.PermissionRead, e.Name, r.Model); err != nil {
			return api.Promotion{}, err
		}
	}
	return g.inner.Preview(ctx, r)
}

func (g guardedPreview) PreviewRollback(ctx context.Context, r api.RollbackRequest) (api.Promotion, error) {
	if err := Allow(ctx, storage.PermissionRead, r.Environment, r.Model); err != nil {
		return api.Promotion{}, err
	}
	return g.inner.PreviewRollback(ctx, r)
}

func (g guardedPreview) Standing(ctx context.Context, environment, model string) ([]api.Candidate, error) {
	if err := Allow(ctx, storage.PermissionRead, environment, model); err != nil {
		return nil, err
	}
	return g.inner.Standing(ctx, environment, model)
}
