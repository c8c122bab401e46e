package approver

import (
	"context"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// breakGlass makes the statement of a request that names requirements to skip. Errors: CodeInvalid if
// the environment does not let them be skipped.
func (a Approvals) breakGlass(ctx context.Context, req Request, to policy.Environment, given *Given) error {
	for _, name := range req.BreakGlass {
		if !slices.Contains(to.BreakGlass, name) {
			allowed := "none"
			if len(to.BreakGlass) > 0 {
				allowed = strings.Join(to.BreakGlass, ", ")
			}
			return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s does not let %.40q be skipped: %s", to.Name, name, allowed),
				"environments.yaml lists under break-glass: what may be skipped there")
		}
	}
	heads, err := a.Registry.Heads(ctx, to.Name, given.Model)
	if err != nil {
		return err
	}
	b := evidence.BreakGlass{
		ResourceURI: given.Approval.ResourceURI, Skips: req.BreakGlass, Comment: req.Comment,
		ApprovedOn: given.Approval.ApprovedOn, ExpiresOn: given.Approval.ExpiresOn,
	}
	for _, h := range heads {
		b.Replaces = evidence.NewDigestSet(h.Release)
	}
	given.BreakGlass = &b
	return nil
}
