package build

import (
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/tensor"
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

// keepWhole adds to the failure of an engine in half precision what keeps all nodes of the operator that it is about in float32.
func (e BuiltEngine) keepWhole(failed error) error {
	const most = 200
	var of *toolchain.Failure
	if !errors.As(failed, &of) || of.Op == "" || of.DType != string(tensor.Float16) {
		return failed
	}
	model := slices.IndexFunc(e.base, func(in toolchain.Input) bool { return in.Name == run.ModelFile })
	if e.planned.Quantize["method"] != plan.MethodFP16 || model < 0 {
		return failed
	}
	nodes, err := onnx.NodeNames(e.base[model].Path, of.Op, most, bound.Limits{})
	if err != nil || len(nodes) == 0 {
		return failed
	}
	q := spec.Quantize{Method: spec.MethodFP16, Exclude: run.Texts(e.planned.Quantize["exclude_nodes"])}
	for _, node := range nodes {
		if !slices.Contains(q.Exclude, node) {
			q.Exclude = append(q.Exclude, node)
		}
	}
	return registry.WithHint(failed, "the runtime does not compute %s in float16: to keep its nodes in float32, write quantize: %s", of.Op, q.Flow())
}
