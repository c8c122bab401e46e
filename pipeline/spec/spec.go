package spec

import (
	"errors"
	"io/fs"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/validators"
)

// File is the name that a spec has where none is given.
const File = "mlpromote.yaml"

// Spec is the content of mlpromote.yaml, read and checked.
type Spec struct {
	File string // as Load was given it
	Dir  string // absolute; what written paths start from

	Model       string            `yaml:"model,required" doc:"Name of the model: lower-case words separated by '/'"`
	Version     string            `yaml:"version,required" doc:"Semantic version of the release, without build metadata"`
	Source      Source            `yaml:"source,required" doc:"The model: an ONNX file, or one in another format that is imported"`
	Shapes      Shapes            `yaml:"shapes" doc:"What the model's symbolic dimensions can be: [min, opt, max], or one size"`
	Cases       Cases             `yaml:"cases,required" doc:"Inputs that every engine is compared with the reference on: recorded ones in a folder, or generated ones"`
	Calibration *Folder           `yaml:"calibration" doc:"Inputs that static quantization takes ranges from: safetensors in a folder"`
	Assets      []Path            `yaml:"assets" doc:"Files that are part of every engine, such as a tokenizer or labels"`
	Variants    []Variant         `yaml:"variants,required" doc:"In which precisions to build"`
	Targets     []Target          `yaml:"targets,required" doc:"For which machines to build: os/arch or os/arch/level, or a mapping"`
	Limits      Limits            `yaml:"limits" doc:"How far an engine may be from the reference"`
	Objective   Objective         `yaml:"objective" doc:"What mlpromote tune looks for; throughput within the limits where nothing is said"`
	Tune        Tune              `yaml:"tune" doc:"What mlpromote tune tries"`
	Budgets     map[string]Budget `yaml:"budgets" doc:"Per toolchain: what one step may take"`
	Cache       Cache             `yaml:"cache" doc:"OCI repository in which builds on several machines share finished steps: oci://HOST/REPOSITORY"`
}

// Load reads and checks the spec in the file path. Targets may name [Toolchains], and
// those that the caller knows besides. Errors: CodeInvalid, with
// file:line:column for everything that is wrong in it, and with a hint where there
// is no such file; CodeInternal where it cannot be read.
func Load(path string, toolchains ...string) (*Spec, error) {
	data, err := strictyaml.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = registry.Errorf(registry.CodeInvalid, "%s: no such file", path)
		return nil, registry.WithHint(err, "write one with: mlpromote init MODEL.onnx, or name one with -f")
	case registry.HasCode(err, registry.CodeInvalid):
		return nil, err
	case err != nil:
		return nil, registry.Errorf(registry.CodeInternal, "read %s: %w", path, err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, registry.Errorf(registry.CodeInternal, "folder of %s: %w", path, err)
	}
	s := &Spec{File: path, Dir: dir}
	doc, err := strictyaml.Decode(path, data, s)
	if err != nil {
		return nil, err
	}
	s.complete()
	c := checker{Spec: s, doc: doc, others: toolchains}
	c.check()
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// complete fills in what the short forms leave out and resolves paths.
func (s *Spec) complete() {
	paths := []*Path{&s.Source.Path, &s.Cases.Path}
	if s.Calibration != nil {
		paths = append(paths, &s.Calibration.Path)
	}
	for i := range s.Targets {
		paths = append(paths, &s.Targets[i].Toolchain.Tuning)
	}
	for i := range s.Source.Operators {
		paths = append(paths, &s.Source.Operators[i])
	}
	for i := range s.Assets {
		paths = append(paths, &s.Assets[i])
	}
	for _, p := range paths {
		p.resolve(s.Dir)
	}
	for i := range s.Variants {
		s.Variants[i].complete()
	}
	for i := range s.Tune.Variants {
		s.Tune.Variants[i].complete()
	}
	for i := range s.Targets {
		s.Targets[i].complete(s.Variants)
	}
}

// Precisions lists the precisions of the variants, each once, in their order.
func (s *Spec) Precisions() []string {
	var out []string
	seen := make(map[string]bool)
	for _, v := range s.Variants {
		if !seen[v.Precision] {
			out = append(out, v.Precision)
		}
		seen[v.Precision] = true
	}
	return out
}

// Variant finds a variant by name.
func (s *Spec) Variant(name string) (Variant, bool) {
	for _, v := range s.Variants {
		if v.Name == name {
			return v, true
		}
	}
	return Variant{}, false
}

// ExpandLimits gives the limits that the spec's preset and its own words stand for,
// on a model with the interface. Errors: those of [validators.ExpandPreset].
func (s *Spec) ExpandLimits(i validators.Interface) (validators.Limits, error) {
	return validators.ExpandPreset(s.Limits.Preset, i, s.Precisions(), s.LimitOverrides())
}
