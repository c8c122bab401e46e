package spec

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/registry/toolchains"
)

// Target is a kind of machine to build for. "linux/amd64/v3" alone will do; it is
// named linux-amd64-v3.
type Target struct {
	Name              string       `yaml:"name,required" doc:"Name of the target; part of tags"`
	OS                string       `yaml:"os" doc:"Operating system; linux where nothing is said" enum:"linux,darwin,windows"`
	CPU               CPU          `yaml:"cpu" doc:"Processor that the engine needs"`
	Accelerator       *Accelerator `yaml:"accelerator" was:"gpu" doc:"Accelerator that the engine needs"`
	Toolchain         Toolchain    `yaml:"toolchain" doc:"What makes the engine; onnxruntime where nothing is said"`
	Variants          []string     `yaml:"variants" doc:"Names of the variants to build for this target; all where nothing is said"`
	Load              *Loading     `yaml:"load" doc:"How nodes load its engines, for what their variant does not say; as the runtime does by itself where nothing is said"`
	RequiredNodeTypes []string     `yaml:"required_node_types" was:"witnesses" doc:"Node types on which an engine must pass"`
	Runner            string       `yaml:"runner" doc:"Label of the CI runners that build and verify its engines; of those of the system that runs mlpromote ci matrix"`
	Compatibility     string       `yaml:"compatibility" was:"stretch" doc:"How far a device may differ from the accelerator that an engine was compiled on" enum:"exact,same-compute-capability,version-compatible"`
}

// CPU is a processor.
type CPU struct {
	Arch     string   `yaml:"arch,required" doc:"Architecture" enum:"amd64,arm64"`
	Level    string   `yaml:"level" doc:"x86-64 level; v1, any such processor, where nothing is said" enum:"v1,v2,v3,v4"`
	Features []string `yaml:"features" doc:"Features beyond the level, such as avx512_vnni"`
}

// Accelerator is a GPU or another device.
type Accelerator struct {
	Vendor    string `yaml:"vendor" doc:"Maker, such as nvidia"`
	Product   string `yaml:"product" doc:"Product as GPU feature discovery names it, such as NVIDIA-L4"`
	Arch      string `yaml:"arch" doc:"Architecture, such as sm_89"`
	Count     int    `yaml:"count" doc:"How many devices"`
	MemoryMiB int64  `yaml:"memory_mib" doc:"Memory of a device in MiB"`
	MIG       string `yaml:"mig" doc:"MIG profile, such as 1g.18gb"`
	Driver    string `yaml:"driver" doc:"Lowest driver version"`
}

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

// ProviderOptions are texts, numbers and booleans by name, as they are written.
type ProviderOptions map[string]string

// DecodeYAML reads the mapping.
func (o *ProviderOptions) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() != strictyaml.Mapping {
		n.Problemf("options is %s: want a mapping from names to texts, numbers or booleans", n.Kind())
	}
	*o = make(ProviderOptions)
	for _, e := range n.Entries() {
		if e.Value.Kind() != strictyaml.Scalar {
			e.Value.Problemf("option %s is %s: want a text, a number or a boolean", e.Key, e.Value.Kind())
		}
		(*o)[e.Key] = e.Value.Text()
	}
}

// RegistryProviders are the providers as engines record them.
func (t Toolchain) RegistryProviders() []artifact.Provider {
	var all []artifact.Provider
	for _, p := range t.Providers {
		all = append(all, artifact.Provider{Name: p.Name, Options: p.Options})
	}
	return all
}

// DecodeYAML reads a name, or the mapping.
func (t *Toolchain) DecodeYAML(n *strictyaml.Node) {
	type plain Toolchain
	n.DecodeEither(&t.Name, (*plain)(t))
}

// DecodeYAML reads os/arch or os/arch/level, or the mapping.
func (t *Target) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() == strictyaml.Mapping {
		type plain Target
		n.Decode((*plain)(t))
		return
	}
	var short string
	n.Decode(&short)
	if n.Kind() != strictyaml.Scalar {
		return
	}
	parts := strings.Split(short, "/")
	if len(parts) < 2 || len(parts) > 3 {
		n.Problemf("target %q: want os/arch or os/arch/level, for example linux/amd64/v3, or a mapping with a name", short)
		return
	}
	t.OS, t.CPU.Arch = parts[0], parts[1]
	if len(parts) == 3 {
		t.CPU.Level = parts[2]
	}
}

// complete fills in what a target does not say.
func (t *Target) complete(variants []Variant) {
	if t.OS == "" {
		t.OS = "linux"
	}
	if t.Accelerator != nil {
		if t.Accelerator.Vendor == "" {
			t.Accelerator.Vendor = "nvidia"
		}
		if t.CPU.Arch == "" {
			t.CPU.Arch = "amd64"
		}
	}
	if t.CPU.Level == "" && t.CPU.Arch == "amd64" {
		t.CPU.Level = "v1"
	}
	if t.Name == "" {
		t.Name = strings.TrimSuffix(t.OS+"-"+t.CPU.Arch+"-"+t.CPU.Level, "-")
	}
	if t.Toolchain.Name == "" {
		t.Toolchain.Name = ToolchainONNXRuntime
	}
	if t.Variants == nil {
		for _, v := range variants {
			if !slices.Contains(t.Variants, v.Name) {
				t.Variants = append(t.Variants, v.Name)
			}
		}
	}
}

// Registry gives the target document. Its runtimes are not known before the
// toolchain is: the plan adds them.
func (t Target) Registry() artifact.Target {
	return artifact.Target{
		V: artifact.TargetVersion, Name: t.Name, OS: t.OS,
		CPU:               artifact.TargetCPU{Arch: t.CPU.Arch, Level: t.CPU.Level, Features: t.CPU.Features},
		Accelerator:       t.Accelerator.registry(),
		RequiredNodeTypes: t.RequiredNodeTypes, Compatibility: artifact.Compatibility(t.Compatibility),
	}
}

// registry gives the accelerator of a target document, or nil.
func (g *Accelerator) registry() *artifact.TargetAccelerator {
	if g == nil {
		return nil
	}
	a := &artifact.TargetAccelerator{
		Vendor: g.Vendor, Arch: g.Arch, Product: g.Product, Count: g.Count, MemoryMiB: g.MemoryMiB, MIG: g.MIG}
	if g.Driver != "" {
		a.Driver = &artifact.Constraint{Min: g.Driver}
	}
	return a
}

// Images are the container images that targets ask for, by toolchain.
func (s *Spec) Images() map[string]string {
	all := make(map[string]string)
	for _, t := range s.Targets {
		if image := t.Toolchain.Image; image != "" {
			all[t.Toolchain.Name] = image
		}
	}
	return all
}

// Pythons are the interpreters that targets ask for, by toolchain: a name to look up, or the
// absolute path of a file in the spec's folder. Errors: CodeInvalid for a path that leads out
// of the folder.
func (s *Spec) Pythons() (map[string]string, error) {
	all := make(map[string]string)
	for _, t := range s.Targets {
		python := string(t.Toolchain.Python)
		if python == "" {
			continue
		}
		if path := t.Toolchain.Python.path(); path.Written != "" {
			f, err := s.Files.Open(path.Written)
			if err != nil {
				return nil, err
			}
			python = f.Name()
			if err := f.Close(); err != nil {
				return nil, err
			}
		}
		all[t.Toolchain.Name] = python
	}
	return all, nil
}
