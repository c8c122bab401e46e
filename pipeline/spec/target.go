package spec

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/strictyaml"
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

// LoadProfile returns how nodes load a variant's engine for a target: what the variant says, and
// else what the target says. It is nil where neither says anything. Errors: CodeInvalid for
// options that the target's toolchain does not have.
func (t Target) LoadProfile(v Variant) (*artifact.LoadProfile, error) {
	if t.Load == nil && v.Load == nil {
		return nil, nil
	}
	said := v.Load.over(t.Load)
	profile, err := artifact.NewLoadProfile(t.Toolchain.Name, said.Options, said.Env, said.Required)
	if err != nil || profile.IsZero() {
		return nil, err
	}
	return &profile, nil
}
