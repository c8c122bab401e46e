package build

import (
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// withoutFailed drops the engines that failed, if the build is to keep going and others are left.
// failures has why, in the order of the plan. Otherwise the failures are the error.
func (a made) withoutFailed(lacking lackingTools, keepGoing bool) (kept made, failures, err error) {
	kept = a
	kept.engines, kept.left = nil, slices.Clone(lacking.engines)
	var all []error
	if lacking.err != nil {
		all = append(all, lacking.err)
	}
	for _, e := range a.engines {
		if e.failed == nil {
			kept.engines = append(kept.engines, e)
			continue
		}
		all = append(all, e.failed)
		kept.left = append(kept.left, FailedEngine{e.label(), registry.CodeOf(e.failed), registry.PlainText(e.failed.Error())})
	}
	failures = errors.Join(all...)
	switch {
	case failures == nil, keepGoing && len(kept.engines) > 0:
		return kept, failures, nil
	case len(kept.engines) > 0:
		failures = registry.WithHint(failures, "%s could be made, and nothing is stored: to make the release without the others, build with --keep-going",
			registry.Count(len(kept.engines), "engine"))
	}
	return kept, nil, failures
}
