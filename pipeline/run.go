package pipeline

import (
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/registry"
)

// How the reference and engines are run. Engines are loaded by their load profile, or as the
// runtime does by itself. Golden outputs are made by a fixed run: with one thread, and the level
// of the toolchain's profile.
const (
	onnxRuntime = plan.ONNXRuntime
	runThreads  = 1
	modelFile   = "model.onnx"
	onnxFormat  = "onnx"
)

// machine names the class of machine that floats are computed on.
func machine(n registry.Node) string {
	kind := n.Kind()
	for _, f := range n.CPU.Features {
		kind += "," + f
	}
	return kind
}
