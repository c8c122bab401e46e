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
