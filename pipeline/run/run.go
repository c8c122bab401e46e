package run

import (
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// ReferenceID names the reference among the engines of a run.
const ReferenceID = "reference"

// ModelOf takes the model that a step made as the input of the next one.
func ModelOf(outcome toolchain.Outcome) ([]toolchain.Input, error) {
	file, ok := outcome.File(ModelFile)
	if !ok {
		return nil, registry.Errorf(registry.CodeInternal, "the step left no %s", ModelFile)
	}
	return []toolchain.Input{{Role: toolchain.RoleModel, Name: file.Name,
		Path: file.Path, Digest: file.Digest, Size: file.Size}}, nil
}

// How the reference and engines are run. Engines are loaded by their load profile, or as the
// runtime does by itself. Golden outputs are made by a fixed run: with one thread, and the level
// of the toolchain's profile.
const (
	OnnxRuntime = plan.ONNXRuntime
	RunThreads  = 1
	ModelFile   = "model.onnx"
	OnnxFormat  = "onnx"
)

// Machine names the class of machine that floats are computed on.
func Machine(n artifact.Node) string {
	kind := n.Kind()
	for _, f := range n.CPU.Features {
		kind += "," + f
	}
	return kind
}
