package pipeline

import (
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/registry"
)

// How the reference and engines are run: every number that a report rests on.
const (
	hub        = plan.Hub
	runThreads = 1
	hubFile    = "model.onnx"
	hubFormat  = "onnx"
)

// machine names the class of machine that floats are computed on.
func machine(n registry.Node) string {
	kind := n.Kind()
	for _, f := range n.CPU.Features {
		kind += "," + f
	}
	return kind
}
