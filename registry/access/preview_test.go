package access_test

import (
	"context"
	"errors"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// previews is a previewer that remembers what it was asked.
type previews struct {
	asked string
	err   error
}

func (p *previews) Preview(context.Context, api.PromoteRequest) (api.Promotion, error) {
	p.asked = "Preview"
	return api.Promotion{}, p.err
}

func (p *previews) PreviewRollback(context.Context, api.RollbackRequest) (api.Promotion, error) {
	p.asked = "PreviewRollback"
	return api.Promotion{}, p.err
}

func (p *previews) Standing(context.Context, string, string) ([]api.Candidate, error) {
	p.asked = "Standing"
	return nil, p.err
}

// ask asks for each preview of a model in prod, and returns the errors.
func (p *previews) ask(ctx context.Context, environments error) map[string]error {
	g := access.Preview(p, func(context.Context) (policy.Environments, error) { return registrytest.Chain(), environments })
	errs := make(map[string]error)
	_, errs["Preview"] = g.Preview(ctx, api.PromoteRequest{Model: model, To: "prod"})
	_, errs["PreviewRollback"] = g.PreviewRollback(ctx, api.RollbackRequest{Model: model, Environment: "prod"})
	_, errs["Standing"] = g.Standing(ctx, "prod", model)
	return errs
}

// A decision tells of evidence in both environments, so who sees it may read in both.
func TestGuardedPreview(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		permission         storage.Permission
		environment, model string
		promotion, rest    bool // may see the preview of a promotion, and the others
	}{
		"reads the model everywhere":       {storage.PermissionRead, "*", model, true, true},
		"reads it in the destination only": {storage.PermissionRead, "prod", model, false, true},
		"reads it in the source only":      {storage.PermissionRead, "staging", model, false, false},
		"reads another model":              {storage.PermissionRead, "*", "text/mood", false, false},
		"pushes":                           {storage.PermissionPush, "*", model, false, false},
		"administers":                      {storage.PermissionAdminister, "**", "**", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for method, err := range new(previews).ask(as(t, c.permission, c.environment, c.model), nil) {
				may := c.rest
				if method == "Preview" {
					may = c.promotion
				}
				if (err == nil) != may || err != nil && !registry.HasCode(err, registry.CodeForbidden) {
					t.Errorf("%s: error %v, want allowed %t", method, err, may)
				}
			}
		})
	}
}

func TestGuardedPreviewPassesErrorsOn(t *testing.T) {
	t.Parallel()
	ctx := as(t, storage.PermissionRead, "**", "**")
	for method, err := range (&previews{err: errUnreachable}).ask(ctx, nil) {
		if !errors.Is(err, errUnreachable) {
			t.Errorf("%s: error %v, want that of the registry", method, err)
		}
	}
	if err := new(previews).ask(ctx, errUnreachable)["Preview"]; !errors.Is(err, errUnreachable) {
		t.Errorf("without environments: error %v", err)
	}
	p := new(previews)
	g := access.Preview(p, func(context.Context) (policy.Environments, error) { return registrytest.Chain(), nil })
	if _, err := g.Preview(ctx, api.PromoteRequest{Model: model, From: "nowhere", To: "prod"}); err == nil || p.asked != "" {
		t.Errorf("along an edge that there is not: error %v, asked for %q", err, p.asked)
	}
	for method, err := range p.ask(t.Context(), nil) {
		if !registry.HasCode(err, registry.CodeUnauthenticated) || p.asked != "" {
			t.Errorf("%s without a principal: error %v, asked for %q", method, err, p.asked)
		}
	}
}
