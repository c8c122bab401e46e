package promoting

import (
	"context"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/parts"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/approver"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/policy"
)

// checkAccepted refuses lines that no requirement of the destination has: an approval that accepts them would lift nothing. The
// registry compares again when the release is promoted. Errors: CodeInvalid; those of reading both releases.
func checkAccepted(ctx context.Context, i *wiring.Instance, from string, req approver.Request) error {
	if len(req.Accepts) == 0 {
		return nil
	}
	lines, err := linesOf(ctx, i, from, req)
	if err != nil {
		return err
	}
	for _, line := range req.Accepts {
		switch {
		case slices.Contains(lines, line):
		case len(lines) == 0:
			return registry.Errorf(registry.CodeInvalid, "--accept %q: no requirement of %s has a line to accept for this release", line, req.Environment)
		default:
			return registry.Errorf(registry.CodeInvalid, "--accept %q: no requirement of %s has this line, want one of:\n  %s",
				line, req.Environment, strings.Join(lines, "\n  "))
		}
	}
	return nil
}

// linesOf lists the differences for which the destination refuses a release until they are accepted.
func linesOf(ctx context.Context, i *wiring.Instance, from string, req approver.Request) ([]string, error) {
	_, to, err := i.Envs.Edge("", req.Environment)
	if err != nil || !to.Policy().Compares() {
		return nil, err
	}
	heads, err := i.Heads(ctx, to.Name, req.Model)
	if err != nil || len(heads) == 0 || heads[0].Release == "" {
		return nil, err
	}
	next, shown, err := promised(ctx, i, from, req.Model, req.Release)
	if err != nil || next.Release.Digest == heads[0].Release {
		return nil, err
	}
	was, before, err := promised(ctx, i, to.Name, req.Model, string(heads[0].Release))
	if err != nil {
		return nil, err
	}
	found, err := parts.Compare(i.Store)(ctx, next, was)
	if err != nil {
		return nil, err
	}
	found.CountCases(shown, before)
	var lines []string
	if slices.Contains(to.Policy().Require, policy.RequireNoLooser) {
		lines = append(lines, found.Looser...)
	}
	if slices.Contains(to.Policy().Require, policy.RequireCompatibleInterface) {
		lines = append(lines, found.Interface...)
	}
	return lines, nil
}

// promised is a release and in how many cases its engines are shown to keep their limits.
func promised(ctx context.Context, i *wiring.Instance, environment, model, release string) (policy.Located, []policy.EngineCases, error) {
	r, err := i.Release(ctx, environment, model, release)
	if err != nil {
		return policy.Located{}, nil, err
	}
	claims, _, err := i.Claims(ctx, environment, r)
	return policy.Located{Repository: registry.Repository(environment, model), Release: r}, policy.CasesShown(r, claims), err
}
