package build

import (
	"regexp"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// halfless finds the operator in what ONNX Runtime says when it comes to a node that it does not compute in float16. That is when the
// node runs, so that it says it of one node at a time.
var halfless = regexp.MustCompile(`running (\w+) node\..*MLFloat16 data type is not supported`)

// keepWhole adds to the failure of an engine in half precision what keeps all nodes of the operator that it is about in float32.
func (e BuiltEngine) keepWhole(failed error) error {
	const most = 200
	said := halfless.FindStringSubmatch(failed.Error())
	model := slices.IndexFunc(e.base, func(in toolchain.Input) bool { return in.Name == run.ModelFile })
	if said == nil || e.planned.Quantize["method"] != plan.MethodFP16 || model < 0 {
		return failed
	}
	nodes, err := onnx.NodeNames(e.base[model].Path, said[1], most, bound.Limits{})
	if err != nil || len(nodes) == 0 {
		return failed
	}
	q := spec.Quantize{Method: spec.MethodFP16, Exclude: run.Texts(e.planned.Quantize["exclude_nodes"])}
	for _, node := range nodes {
		if !slices.Contains(q.Exclude, node) {
			q.Exclude = append(q.Exclude, node)
		}
	}
	return registry.WithHint(failed, "ONNX Runtime does not compute %s in float16: to keep its nodes in float32, write quantize: %s", said[1], q.Flow())
}
