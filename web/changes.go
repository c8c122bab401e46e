package web

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
)

// releaseChanges lists what a release changes against the one that it would replace. known is false where the reader may
// not see one of them, or there is none to compare with.
func releaseChanges(ctx context.Context, reg api.Interface, from, to history.Head) (lines []string, known bool, err error) {
	if to.Release == "" {
		return nil, false, nil
	}
	next, err := reg.Release(ctx, from.Environment, from.Model, string(from.Release))
	if err == nil {
		var now artifact.Release
		if now, err = reg.Release(ctx, to.Environment, to.Model, string(to.Release)); err == nil {
			return api.ReleaseChanges(now, next), true, nil
		}
	}
	if registry.HasCode(err, registry.CodeForbidden) {
		err = nil
	}
	return nil, false, err
}
