package spec

import (
	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/validators"
)

// File is the name that a spec has where none is given.
const File = "mlpromote.yaml"

// SchemaFile is the name of the schema beside a spec, where editors find it.
const SchemaFile = "mlpromote.schema.json"

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

// Input is what the spec says of an input.
type Input struct {
	Features Names `yaml:"features" doc:"Names of its features along the last dimension: a list, or a file with a name in each line or with a JSON list; every engine carries them in labels.json"`
}

// Output is what the spec says of an output.
type Output struct {
	Kind   string `yaml:"kind" doc:"What its values mean: scores or probability of classes, the number of a class, and so on; default limits follow from it" enum:"scores,probability,class,label,embedding,value,mask,boxes,detections,tokens,state,other"`
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

// Budget is what one step of a toolchain may take. Zero fields are the toolchain's own.
type Budget struct {
	Time   Duration `yaml:"time" doc:"How long a step may take, such as 45m; it is stopped then"`
	Cores  int64    `yaml:"cores" doc:"How many cores are kept free for a step"`
	Memory Size     `yaml:"memory" doc:"What a process of a step may write to and what is kept free for it, such as 8GiB"`
	GPUs   int64    `yaml:"gpus" doc:"How many accelerators are kept free for a step"`
}

// Reference is what the spec says of the reference model's outputs.
type Reference struct {
	Accept string `yaml:"accept,required" doc:"Why the golden outputs may differ from what ONNX's reference evaluator computes; it is recorded in the provenance"`
}

// Names are the names of classes or features, in order: List, or what is in File. The zero Names
// are none.
type Names struct {
	File Path
	List []string
}

// DecodeYAML reads a path, or a list.
func (n *Names) DecodeYAML(node *strictyaml.Node) { node.DecodeEither(&n.File, &n.List) }

// none reports whether nothing is said.
func (n Names) none() bool { return n.File.Written == "" && n.List == nil }

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
