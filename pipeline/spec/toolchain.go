package spec

import (
	"strings"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/registry/toolchains"
)

// ToolchainONNXRuntime is the toolchain where none is named.
const ToolchainONNXRuntime = toolchains.Reference

// Toolchains are the names that a target may ask for.
func Toolchains() []string {
	return toolchains.Names(func(t toolchains.Toolchain) bool { return t.Engines })
}

// forAccelerators are the toolchains that compile for accelerators, too.
func forAccelerators() []string {
	return toolchains.Names(func(t toolchains.Toolchain) bool { return t.Accelerators })
}

// Toolchain is what is asked to make an engine. A name alone will do.
type Toolchain struct {
	Name    string `yaml:"name,required" doc:"Name of the toolchain"`
	Version string `yaml:"version" doc:"Version, or its first components; in quotes"`
	// Form is empty for the first kind of engine of the toolchain.
	Form string `yaml:"form" doc:"Kind of engine, where the toolchain makes several: blob of openvino, epcontext of onnxruntime-openvino, int8 of litert"`
	// Providers is empty for those that the toolchain prefers.
	Providers []Provider `yaml:"providers" doc:"Execution providers of ONNX Runtime, the preferred one first; verification fails where another one runs a part of the engine"`
	Tuning    Path       `yaml:"tuning" doc:"File that says how the compiler is to do parts of the model for this target: a tuning spec of iree, in MLIR"`
	Python    Program    `yaml:"python" doc:"An existing Python that has the toolchain's packages, in place of the install from our lock file: a name, which is looked up on PATH, or a path in the folder of the spec"`
	Image     string     `yaml:"image" doc:"A container image on this machine that has Python and the toolchain's packages, by reference or digest, in place of the install from our lock file"`
}

// DecodeYAML reads a name, or the mapping.
func (t *Toolchain) DecodeYAML(n *strictyaml.Node) {
	type plain Toolchain
	n.DecodeEither(&t.Name, (*plain)(t))
}

// RegistryProviders are the providers as engines record them.
func (t Toolchain) RegistryProviders() []artifact.Provider {
	var all []artifact.Provider
	for _, p := range t.Providers {
		all = append(all, artifact.Provider{Name: p.Name, Options: p.Options})
	}
	return all
}

// Program is a program of the machine, by a name without '/', or a file beside the spec, by a
// path as [Path]. The empty Program means that there is none.
type Program string

// path is the path of a file beside the spec. For a name it is the zero Path.
func (p Program) path() Path {
	if strings.ContainsAny(string(p), `/\`) {
		return Path{string(p)}
	}
	return Path{}
}

// Provider is an execution provider of ONNX Runtime. A name alone will do.
type Provider struct {
	Name    string          `yaml:"name,required" doc:"ONNX Runtime's name of it, such as CUDAExecutionProvider"`
	Options ProviderOptions `yaml:"options" doc:"What is asked of the provider, in its own words, such as num_of_threads: 4"`
}

// DecodeYAML reads a name, or the mapping.
func (p *Provider) DecodeYAML(n *strictyaml.Node) {
	type plain Provider
	n.DecodeEither(&p.Name, (*plain)(p))
}
