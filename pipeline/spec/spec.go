package spec

import (
	"errors"
	"io/fs"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/validators"
)

// File is the name that a spec has where none is given.
const File = "mlpromote.yaml"

// Spec is the content of mlpromote.yaml, read and checked.
type Spec struct {
	File  string          // as Load was given it
	Files confined.Folder // opens the files that the spec names, in its folder

	doc *strictyaml.Document // for the places of mistakes that are found after Load

	Model       string            `yaml:"model,required" doc:"Name of the model: lower-case words separated by '/'"`
	Version     string            `yaml:"version,required" doc:"Semantic version of the release, without build metadata"`
	Source      Source            `yaml:"source,required" doc:"The model: an ONNX file, or one in another format that is imported"`
	Shapes      Shapes            `yaml:"shapes" doc:"What the model's symbolic dimensions can be: [min, opt, max], or one size"`
	Cases       Cases             `yaml:"cases,required" doc:"Inputs that every engine is compared with the reference on: recorded ones in a folder, or generated ones"`
	Calibration *Folder           `yaml:"calibration" doc:"Inputs that static quantization takes ranges from: safetensors in a folder"`
	Assets      []Path            `yaml:"assets" doc:"Files that are part of every engine, such as a tokenizer or labels"`
	Variants    []Variant         `yaml:"variants,required" doc:"In which precisions to build"`
	Targets     []Target          `yaml:"targets,required" doc:"For which machines to build: os/arch or os/arch/level, or a mapping"`
	Inputs      map[string]Input  `yaml:"inputs" doc:"Per input: what its features are called"`
	Outputs     map[string]Output `yaml:"outputs" doc:"Per output: what its values mean, a guess where nothing is said; and what its classes are called"`
	Limits      Limits            `yaml:"limits" doc:"How far an engine may be from the reference"`
	Reference   *Reference        `yaml:"reference" doc:"The reference model's outputs, which engines are compared with"`
	Objective   Objective         `yaml:"objective" doc:"What mlpromote tune looks for; throughput within the limits where nothing is said"`
	Tune        Tune              `yaml:"tune" doc:"What mlpromote tune tries"`
	Budgets     map[string]Budget `yaml:"budgets" doc:"Per toolchain: what one step may take"`
	Cache       Cache             `yaml:"cache" doc:"OCI repository in which builds on several machines share finished steps: oci://HOST/REPOSITORY"`
}

// Options say what a spec may name. The zero Options allow the least.
type Options struct {
	Toolchains []string // that targets may name beside those of [Toolchains]
	// Private are folders into which no path of the spec may lead: the data directory and
	// the keys. They need not exist.
	Private []string
}

// Load reads and checks the spec in the file path. All files that it names must be below its
// folder. Errors: CodeInvalid, with file:line:column for every mistake, or with a hint if
// there is no such file; CodeInternal if it cannot be read.
func Load(path string, o Options) (*Spec, error) {
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
	files, err := confined.New(filepath.Dir(path), "the folder of the spec", o.Private...)
	if err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "%s: %w", path, err)
	}
	s := &Spec{File: path, Files: files}
	doc, err := strictyaml.Decode(path, data, s)
	if err != nil {
		return nil, err
	}
	s.complete()
	c := checker{Spec: s, doc: doc, others: o.Toolchains}
	c.check()
	if err := doc.Err(); err != nil {
		return nil, err
	}
	s.doc = doc
	return s, nil
}

// complete fills in what the short forms leave out.
func (s *Spec) complete() {
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
// on a model with the interface and a number of cases. Errors: those of [validators.ExpandPreset].
func (s *Spec) ExpandLimits(i validators.Interface, cases int) (validators.Limits, error) {
	return validators.ExpandPreset(s.Limits.Preset, i, s.Precisions(), cases, s.LimitOverrides())
}

// Input is what the spec says of an input.
type Input struct {
	Features Names `yaml:"features" doc:"Names of its features along the last dimension: a list, or a file with a name in each line or with a JSON list; every engine carries them in labels.json"`
}

// Output is what the spec says of an output.
type Output struct {
	Kind   string `yaml:"kind" doc:"What its values mean: scores or probability of classes, the number of a class, and so on; default limits follow from it" enum:"scores,probability,class,label,embedding,value,mask,boxes,tokens,state,other"`
	Labels Names  `yaml:"labels" doc:"Names of its classes in the order of their numbers: a list, or a file with a name in each line or with a JSON list; every engine carries them in labels.json"`
}

// Kinds gives the kinds of outputs that the spec names.
func (s *Spec) Kinds() map[string]validators.Kind {
	kinds := make(map[string]validators.Kind, len(s.Outputs))
	for name, output := range s.Outputs {
		if output.Kind != "" {
			kinds[name] = validators.Kind(output.Kind)
		}
	}
	return kinds
}
