package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// Model is the source as ONNX, which engines are made of.
type Model struct {
	Source source
	Origin *spec.Origin      // nil if the spec names none
	files  []toolchain.Input // the model file first, then its external data
	Model  *onnx.Model

	// Of a source that had to be imported:
	Plan      *plan.Import
	Step      run.Step
	Identity  toolchain.Identity
	Framework framework // zero: ONNX Runtime runs the source itself
}

// framework predicts with a source as it is.
type framework struct {
	Name   string // "scikit-learn"
	Driver toolchain.Driver
}

// ImportSource reads the source of the spec and turns it into ONNX with known shapes.
func ImportSource(ctx context.Context, env *run.Env, s *spec.Spec, w run.Worker) (Model, error) {
	opened, err := openSource(specFiles{s.Files}, s.Source)
	if err != nil {
		return Model{}, err
	}
	if err := checkOrigin(s.Source, opened.Files); err != nil {
		return Model{}, err
	}
	m := Model{Source: opened, Origin: s.Source.Origin, files: opened.Files, Model: opened.Model}
	if opened.Model != nil && !s.Source.Simplify && shaped(opened.Model) {
		return m, nil
	}
	return m, runImport(ctx, env, s, w, &m)
}

// checkOrigin refuses files that differ from the files that were fetched. Errors: CodeDigest.
func checkOrigin(s spec.Source, files []toolchain.Input) error {
	if s.Origin == nil {
		return nil
	}
	named := make(map[string]registry.Digest, len(files))
	for i, in := range files {
		name := strings.TrimPrefix(in.Name, "source/")
		if i == 0 && !spec.InFolder(s.Format) {
			name = path.Base(s.Path.Written) // importers see it under another name
		}
		named[name] = in.Digest
	}
	if got := spec.PinOf(named); got.String() != s.Origin.Digest {
		return registry.WithHint(registry.Errorf(registry.CodeDigest, "%s: the digest is %s, and source.origin has %s, which %s had when it was fetched",
			s.Path.Written, got, s.Origin.Digest, s.Origin.URI),
			"fetch it again: mlpromote init %s --force; or remove origin from the spec if the file is another model by intent", s.Origin.URI)
	}
	return nil
}

// shaped reports whether the shapes of all outputs are known.
func shaped(m *onnx.Model) bool {
	return !slices.ContainsFunc(m.Outputs, func(v onnx.Value) bool { return v.Shape == nil })
}

func runImport(ctx context.Context, env *run.Env, whole *spec.Spec, w run.Worker, m *Model) error {
	s := whole.Source
	name, err := env.ImporterOf(s.Format)
	if err != nil {
		return err
	}
	tool, err := env.Toolchain(ctx, name)
	if err != nil {
		return err
	}
	if m.Identity, err = tool.Importer.Identity(ctx); err != nil {
		return err
	}
	node, err := env.Node(ctx, nil)
	if err != nil {
		return err
	}
	options := importOptions(s, whole.Shapes)
	job := toolchain.Job{Verb: toolchain.VerbImport, Inputs: m.Source.Files, Options: options, Machine: run.Machine(node)}
	m.Step, err = w.Do(ctx, env.Report(), tool.Importer, run.Task{Name: "import " + s.Path.Written, Job: job, Options: options})
	if err != nil {
		return err
	}
	if m.Model != nil {
		err = m.takeONNX()
	} else {
		m.Framework = framework{tool.Framework, tool.Importer}
		m.files, m.Model, err = OutcomeModel(m.Step.Outcome, nil)
	}
	if err != nil {
		return err
	}
	m.Plan, err = plan.NewImport(s.Format, m.Identity, options, m.Source.Files)
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
func (m *Model) takeONNX() error {
	var err error
	m.files, m.Model, err = OutcomeModel(m.Step.Outcome, m.Source.Files[1:])
	return err
}

// OutcomeModel is the model that an importer left, after the same check as a model of a user.
func OutcomeModel(outcome toolchain.Outcome, external []toolchain.Input) ([]toolchain.Input, *onnx.Model, error) {
	files, err := run.ModelOf(outcome)
	if err != nil {
		return nil, nil, err
	}
	model, err := format.OpenONNX(files[0].Path, bound.Limits{})
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

// Importer is what provenance says of the import, nil where there was none.
func (m Model) Importer() any {
	if m.Plan == nil {
		return nil
	}
	return struct {
		Tool   toolchain.Identity `json:"tool"`
		Plan   *plan.Import       `json:"plan"`
		Result json.RawMessage    `json:"result,omitempty"`
	}{m.Identity, m.Plan, m.Step.Outcome.Result}
}
