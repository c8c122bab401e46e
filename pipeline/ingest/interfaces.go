package ingest

import (
	"context"
	"maps"
	"os"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// InputsOfSpec returns the inputs of the model that a spec names, with the sizes of open dimensions that it says. A model that is not
// ONNX is imported, or taken from the build cache. Errors: CodeInvalid; CodeUnsafe for a format that runs code; those of the importer.
func InputsOfSpec(ctx context.Context, env *run.Env, s *spec.Spec) (validators.Interface, error) {
	m := Model{}
	var err error
	if s.Source.Format == spec.FormatONNX {
		files := specFiles{s.Files}
		err = files.look(s.Source.Path.Written, func(f *os.File) (err error) {
			m.Model, err = files.readModel(s.Source, f)
			return err
		})
	} else {
		m, err = importedAlone(ctx, env, s)
	}
	if err != nil {
		return validators.Interface{}, err
	}
	iface, err := run.InterfaceOf(&onnx.Model{Inputs: m.Model.Inputs})
	if err != nil {
		return validators.Interface{}, registry.Errorf(registry.CodeInvalid, "%s: %w", s.Source.Path.Written, err)
	}
	iface, _ = withBatch(s, m.Model, iface)
	dims, err := m.Allowed().dims(s)
	if err != nil {
		return validators.Interface{}, err
	}
	maps.DeleteFunc(dims, func(name string, _ validators.DimRange) bool { return !slices.Contains(iface.Symbols(), name) }) // of outputs
	iface.AnyNumbers = spec.TakesAnyNumbers(s.Source.Format)
	return iface.WithDims(dims)
}

// importedAlone imports the source of a spec, of which nothing is built.
func importedAlone(ctx context.Context, env *run.Env, s *spec.Spec) (Model, error) {
	temp, err := tempdir.New("inputs")
	if err != nil {
		return Model{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	return ImportSource(ctx, env, s, run.Worker{Scratch: scratch, Budgets: run.Budgets(s)})
}
