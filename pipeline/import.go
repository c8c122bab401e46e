package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
)

// importedModel is the source as ONNX, which engines are made of.
type importedModel struct {
	source source
	files  []toolchain.Input // the model file first, then its external data
	model  *format.Model

	// Of a source that had to be imported:
	plan      *plan.Import
	step      takenStep
	identity  toolchain.Identity
	framework framework // zero: ONNX Runtime runs the source itself
}

// framework predicts with a source as it is.
type framework struct {
	name   string // "scikit-learn"
	driver toolchain.Driver
}

// imported reads the source of the spec and turns it into ONNX with known shapes.
func (p *Pipeline) imported(ctx context.Context, s *spec.Spec, w worker) (importedModel, error) {
	opened, err := openSource(specFiles{s.Files}, s.Source)
	if err != nil {
		return importedModel{}, err
	}
	m := importedModel{source: opened, files: opened.files, model: opened.model}
	if opened.model != nil && !s.Source.Simplify && shaped(opened.model) {
		return m, nil
	}
	return m, p.runImport(ctx, s, w, &m)
}

// shaped reports whether the shapes of all outputs are known.
func shaped(m *format.Model) bool {
	return !slices.ContainsFunc(m.Outputs, func(v format.Value) bool { return v.Shape == nil })
}

func (p *Pipeline) runImport(ctx context.Context, whole *spec.Spec, w worker, m *importedModel) error {
	s := whole.Source
	name, err := p.ImporterOf(s.Format)
	if err != nil {
		return err
	}
	tool, err := p.Toolchain(ctx, name)
	if err != nil {
		return err
	}
	if m.identity, err = tool.Importer.Identity(ctx); err != nil {
		return err
	}
	node, err := p.Node(ctx, nil)
	if err != nil {
		return err
	}
	options := importOptions(s, whole.Shapes)
	job := toolchain.Job{Verb: toolchain.VerbImport, Inputs: m.source.files, Options: options, Machine: machine(node)}
	m.step, err = w.do(ctx, p.report(), tool.Importer, wanted{name: "import " + s.Path.Written, job: job, options: options})
	if err != nil {
		return err
	}
	if m.model != nil {
		err = m.takeONNX()
	} else {
		m.framework = framework{tool.Framework, tool.Importer}
		m.files, m.model, err = outcomeModel(m.step.outcome, nil)
	}
	if err != nil {
		return err
	}
	m.plan, err = plan.NewImport(s.Format, m.identity, options, m.source.files)
	return err
}

// importOptions are the importer's words for what the spec says.
func importOptions(s spec.Source, shapes spec.Shapes) map[string]any {
	switch s.Format {
	case spec.FormatONNX:
		return map[string]any{"simplify": s.Simplify}
	case spec.FormatSkops:
		trusted := slices.Clone(s.Trust.Types)
		slices.Sort(trusted)
		return map[string]any{"trusted": append([]string{}, trusted...)}
	case spec.FormatTorchScript:
		return inputOptions(s.Inputs, shapes)
	}
	if a := s.Architecture; a != nil {
		input := make([]string, len(a.Input))
		for i, size := range a.Input {
			input[i] = strconv.FormatInt(size, 10)
		}
		options := map[string]any{"kind": a.Kind, "input": input, "layers": a.Layers}
		if a.Kind == spec.ArchitectureEncoder {
			options["heads"], options["norm"] = a.Heads, cmp.Or(a.Norm, "after")
		}
		return options
	}
	return map[string]any{}
}

// inputOptions describes the inputs of a model whose file does not: four lists, with an entry for each
// input. Shapes and examples have their dimensions with commas between them.
func inputOptions(inputs []spec.SourceInput, shapes spec.Shapes) map[string]any {
	names, dtypes := make([]string, len(inputs)), make([]string, len(inputs))
	of, examples := make([]string, len(inputs)), make([]string, len(inputs))
	for i, in := range inputs {
		var dims, sizes []string
		for d, size := range in.Example(shapes) {
			dims, sizes = append(dims, in.Shape[d].String()), append(sizes, strconv.FormatInt(size, 10))
		}
		names[i], dtypes[i], of[i], examples[i] = in.Name, cmp.Or(in.DType, "float32"), strings.Join(dims, ","), strings.Join(sizes, ",")
	}
	return map[string]any{"names": names, "dtypes": dtypes, "shapes": of, "examples": examples}
}

// takeONNX takes an ONNX source over as it was imported. External data that the importer
// did not write again is that of the source.
func (m *importedModel) takeONNX() error {
	var err error
	m.files, m.model, err = outcomeModel(m.step.outcome, m.source.files[1:])
	return err
}

// outcomeModel is the model that an importer left, after the same check as a model of a user.
func outcomeModel(outcome toolchain.Outcome, external []toolchain.Input) ([]toolchain.Input, *format.Model, error) {
	files, err := modelOf(outcome)
	if err != nil {
		return nil, nil, err
	}
	model, err := format.OpenONNX(files[0].Path, format.Limits{})
	if err != nil {
		return nil, nil, err
	}
	for _, name := range model.ExternalData {
		if made, ok := outcome.File(name); ok {
			files = append(files,
				toolchain.Input{Role: toolchain.RoleModel, Name: name, Path: made.Path, Digest: made.Digest, Size: made.Size})
			continue
		}
		i := slices.IndexFunc(external,
			func(in toolchain.Input) bool { return in.Name == filepath.ToSlash(filepath.Clean(name)) })
		if i < 0 {
			return nil, nil, registry.Errorf(registry.CodeInternal, "the importer left no %s, which its model needs", name)
		}
		files = append(files, external[i])
	}
	return files, model, nil
}

// referenceRun is how the outputs are made that engines are compared with: by the
// framework of the source, on the source, so that a conversion is compared with the rest.
func (m maker) referenceRun() (driver toolchain.Driver, job toolchain.Job, kind, version string) {
	from := m.inputs.imported
	job = toolchain.Job{Verb: toolchain.VerbRun, Machine: machine(m.node), Run: &toolchain.RunOptions{
		Engines: []toolchain.RunEngine{{ID: referenceID, Path: from.source.files[0].Name}}, Threads: runThreads,
	}}
	job.Inputs = slices.Concat(from.source.files, from.source.operators, m.inputs.Cases.Files)
	for _, library := range from.source.operators {
		job.Run.Engines[0].Operators = append(job.Run.Engines[0].Operators, library.Name)
	}
	if f := from.framework; f.driver != nil {
		job.Options = from.plan.Options
		return f.driver, job, f.name + "/" + from.identity.Version, from.identity.Version
	}
	reference := m.tools[onnxRuntime]
	job.Run.Level = reference.Profile.Level
	return reference.Engines, job, onnxRuntime + "/" + reference.Profile.Level, reference.identity.Version
}

// importer is what provenance says of the import, nil where there was none.
func (m importedModel) importer() any {
	if m.plan == nil {
		return nil
	}
	return struct {
		Tool   toolchain.Identity `json:"tool"`
		Plan   *plan.Import       `json:"plan"`
		Result json.RawMessage    `json:"result,omitempty"`
	}{m.identity, m.plan, m.step.outcome.Result}
}
