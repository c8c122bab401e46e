package pipeline

import (
	"errors"

	"mlpromote.dev/mlpromote/registry"
)

// FailedEngine is an engine of a plan that could not be made, or does not load, and why.
type FailedEngine struct {
	Label  string        `json:"label"`
	Code   registry.Code `json:"code"`
	Reason string        `json:"reason"`
}

// dropFailed drops the engines that failed, if the build is to keep going and others are left.
// failures has why, in the order of the plan. Otherwise the failures are the error.
func (b *build) dropFailed(keepGoing bool) (failures, err error) {
	var good []builtEngine
	var all []error
	for _, e := range b.engines {
		if e.failed == nil {
			good = append(good, e)
			continue
		}
		all = append(all, e.failed)
		b.left = append(b.left, FailedEngine{e.label(), registry.CodeOf(e.failed), registry.PlainText(e.failed.Error())})
	}
	failures = errors.Join(all...)
	switch {
	case failures == nil:
		return nil, nil
	case keepGoing && len(good) > 0:
		b.engines = good
		return failures, nil
	case len(good) > 0:
		failures = registry.WithHint(failures, "%s could be made, and nothing is stored: to make the release without the others, build with --keep-going",
			registry.Count(len(good), "engine"))
	}
	return nil, failures
}
