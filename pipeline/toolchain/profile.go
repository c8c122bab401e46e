package toolchain

import "mlpromote.dev/mlpromote/registry"

// Profile is what is fixed about the engines that a toolchain makes.
type Profile struct {
	Name   string // of the toolchain, and of the runtime that a node must have: "openvino"
	Format string // of engines, as the model format is called: "onnx", "openvino-ir"
	Entry  string // the file of an engine that the runtime loads: "model.xml"
	// Level is how far the runtime optimizes an engine when it loads it, for [RunOptions];
	// empty for a runtime that has no such levels.
	Level string
	// NativeCode is true where an engine is or holds machine code.
	NativeCode bool
	// CompileOnly is true where no driver runs the engines: others have to prove them.
	CompileOnly bool
	// ExactRuntime is true where an engine needs the version of the runtime that its
	// compiler belongs to, and no later one.
	ExactRuntime bool
	// Reproducible is what becomes of an engine that is compiled twice.
	Reproducible registry.Reproducibility
	// Cost is what a step takes of the machine, where nothing else is said.
	Cost Cost
	// CompileOptions are the options of VerbCompile for a target and precision. Errors:
	// CodeInvalid for a target that the toolchain cannot compile for.
	CompileOptions func(t registry.Target, precision string) (map[string]any, error)
}
