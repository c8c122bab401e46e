package pipeline

import (
	"context"
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/registry"
)

// FailedEngine is an engine of a spec that could not be made, or does not load, and why.
type FailedEngine struct {
	Label  string        `json:"label"`
	Code   registry.Code `json:"code"`
	Reason string        `json:"reason"`
}

// lackingTools are engines of a spec whose toolchains cannot be had on this machine.
type lackingTools struct {
	engines []FailedEngine
	err     error // about each toolchain
}

// toolsFor opens the toolchains that the engines of a spec need. One that cannot be installed or
// found is not needed by all engines: if the build is to keep going, those that need it are taken
// out of in. Errors: those of ONNX Runtime, which every build needs; of the other toolchains, if the
// build is not to keep going or no engine is left.
func (p *Pipeline) toolsFor(ctx context.Context, in *inputs, keepGoing bool) (tools, lackingTools, error) {
	found := make(tools)
	if err := found.open(ctx, p, onnxRuntime); err != nil {
		return nil, lackingTools{}, err
	}
	var lacking lackingTools
	var good []plan.Requested
	failed := make(map[string]error)
	for _, e := range in.Engines {
		var why error
		for _, name := range e.Tools() {
			err, tried := failed[name]
			if !tried {
				err = found.open(ctx, p, name)
				failed[name] = err
				lacking.err = errors.Join(lacking.err, err)
			}
			if ctx.Err() != nil {
				return nil, lackingTools{}, err
			}
			if why == nil {
				why = err
			}
		}
		if why == nil {
			good = append(good, e)
			continue
		}
		lacking.engines = append(lacking.engines, FailedEngine{e.Target.Name + "/" + e.Variant, registry.CodeOf(why), registry.PlainText(why.Error())})
	}
	switch {
	case lacking.err == nil:
		return found, lackingTools{}, nil
	case keepGoing && len(good) > 0:
		in.Engines = good
		return found, lacking, nil
	case len(good) > 0:
		return nil, lacking, registry.WithHint(lacking.err,
			"%s can be made without: to make the release of those, build with --keep-going", registry.Count(len(good), "engine"))
	}
	return nil, lacking, lacking.err
}

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
