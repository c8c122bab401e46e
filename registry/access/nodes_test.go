package access_test

import (
	"context"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/storage"
)

// fleet has a report of each of some models in prod, in pages of one.
type fleet struct {
	models []string
	stored []storage.NodeReport
	err    error
}

func (f *fleet) ReportNode(_ context.Context, r storage.NodeReport) (storage.NodeReport, error) {
	f.stored = append(f.stored, r)
	return r, f.err
}

func (f *fleet) NodeReports(_ context.Context, environment, model, after string, _ int) (storage.Page[storage.NodeReport], error) {
	var page storage.Page[storage.NodeReport]
	for _, m := range f.models {
		r := storage.NodeReport{Node: "edge-1", Environment: environment, Model: m, Reporter: "token:fleet"}
		if r.Name() <= after || model != "" && m != model {
			continue
		}
		if len(page.Items) == 1 {
			page.Next = page.Items[0].Name()
			break
		}
		page.Items = append(page.Items, r)
	}
	return page, f.err
}

func (f *fleet) SilentNodes(ctx context.Context, environment, model, after string, limit int) (storage.Page[storage.NodeReport], error) {
	return f.NodeReports(ctx, environment, model, after, limit)
}

// Who may read a model reports nodes of it, and sees what others report of it, and nothing of another model.
func TestGuardNodes(t *testing.T) {
	t.Parallel()
	const mood, voice = "text/mood", "text/voice"
	for name, c := range map[string]struct {
		grant              [2]string // environment and model
		permission         storage.Permission
		environment, model string
		see                []string // empty: it is refused
		partial            bool
	}{
		"its model":                       {[2]string{"prod", model}, storage.PermissionRead, "prod", model, []string{model}, false},
		"all models, of which it may one": {[2]string{"prod", model}, storage.PermissionRead, "prod", "", []string{model}, true},
		"all models":                      {[2]string{"**", "**"}, storage.PermissionRead, "prod", "", []string{mood, voice, model}, false},
		"another model":                   {[2]string{"prod", model}, storage.PermissionRead, "prod", mood, nil, false},
		"another environment":             {[2]string{"prod", model}, storage.PermissionRead, "staging", model, nil, false},
		"all models elsewhere":            {[2]string{"prod", model}, storage.PermissionRead, "staging", "", nil, false},
		"without reading":                 {[2]string{"prod", model}, storage.PermissionPush, "prod", model, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner := &fleet{models: []string{mood, voice, model}}
			g, ctx := access.GuardNodes(inner), as(t, c.permission, c.grant[0], c.grant[1])
			var seen []string
			partial := false
			for after, pages := "", 0; pages < 5; pages++ {
				page, err := g.NodeReports(ctx, c.environment, c.model, after, 1)
				if (err == nil) != (len(c.see) > 0) || err != nil && !registry.HasCode(err, registry.CodeForbidden) {
					t.Fatalf("error %v, want reports of %q", err, c.see)
				}
				for _, r := range page.Items {
					seen = append(seen, r.Model)
				}
				if partial = partial || page.Partial; page.Next == "" {
					break
				}
				after = page.Next
			}
			if !slices.Equal(seen, c.see) || partial != c.partial {
				t.Errorf("seen are reports of %q, partial %t; want %q, partial %t", seen, partial, c.see, c.partial)
			}
			silent, err := g.SilentNodes(ctx, c.environment, c.model, "", 10)
			if (err == nil) != (len(c.see) > 0) || err == nil && (silent.Items[0].Model != c.see[0] || silent.Partial != c.partial) {
				t.Errorf("silent nodes: %+v, error %v, want those of %q", silent, err, c.see)
			}
			if c.model == "" {
				return
			}
			_, err = g.ReportNode(ctx, storage.NodeReport{Node: "edge-1", Environment: c.environment, Model: c.model})
			if (err == nil) != (len(c.see) > 0) || (len(inner.stored) == 1) != (len(c.see) > 0) {
				t.Errorf("a report: error %v, %d stored", err, len(inner.stored))
			}
		})
	}
}

func TestGuardNodesPassesErrorsOn(t *testing.T) {
	t.Parallel()
	g := access.GuardNodes(&fleet{models: []string{model}, err: errUnreachable})
	ctx := as(t, storage.PermissionRead, "prod", model)
	if page, err := g.NodeReports(ctx, "prod", model, "", 1); err == nil || len(page.Items) != 0 {
		t.Errorf("a list: %+v, error %v, want the error alone", page, err)
	}
	if _, err := g.ReportNode(ctx, storage.NodeReport{Environment: "prod", Model: model}); err == nil {
		t.Error("a report: no error")
	}
	if _, err := g.NodeReports(t.Context(), "prod", model, "", 1); !registry.HasCode(err, registry.CodeUnauthenticated) {
		t.Errorf("without a principal: error %v, want CodeUnauthenticated", err)
	}
}
