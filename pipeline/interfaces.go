package pipeline

import (
	"context"
	"maps"
	"os"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format"
)

// InputsOfModel returns the inputs of an ONNX file, without outputs and sizes of open dimensions. Errors:
// CodeInvalid; CodeUnsafe for a format that runs code.
func InputsOfModel(file string) (validators.Interface, error) {
	d, err := OpenDraft(file)
	return d.iface, err
}

// InputsOfSpec returns the inputs of the model that a spec names, with the sizes of open dimensions that it says. A model that is not
// ONNX is imported, or taken from the build cache. Errors: CodeInvalid; CodeUnsafe for a format that runs code; those of the importer.
func (p *Pipeline) InputsOfSpec(ctx context.Context, s *spec.Spec) (validators.Interface, error) {
	m := importedModel{}
	var err error
	if s.Source.Format == spec.FormatONNX {
		files := specFiles{s.Files}
		err = files.look(s.Source.Path.Written, func(f *os.File) (err error) {
			m.model, err = files.readModel(s.Source, f)
			return err
		})
	} else {
		m, err = p.importedAlone(ctx, s)
	}
	if err != nil {
		return validators.Interface{}, err
	}
	iface, err := interfaceOf(&format.Model{Inputs: m.model.Inputs})
	if err != nil {
		return validators.Interface{}, registry.Errorf(registry.CodeInvalid, "%s: %w", s.Source.Path.Written, err)
	}
	dims, err := m.allowed().dims(s)
	if err != nil {
		return validators.Interface{}, err
	}
	maps.DeleteFunc(dims, func(name string, _ validators.DimRange) bool { return !slices.Contains(iface.Symbols(), name) }) // of outputs
	iface.AnyNumbers = spec.TakesAnyNumbers(s.Source.Format)
	return iface.WithDims(dims)
}

// importedAlone imports the source of a spec, of which nothing is built.
func (p *Pipeline) importedAlone(ctx context.Context, s *spec.Spec) (importedModel, error) {
	temp, err := tempdir.New("inputs")
	if err != nil {
		return importedModel{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	return p.imported(ctx, s, worker{scratch, budgets(s)})
}
