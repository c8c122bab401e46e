package pipeline

import (
	"os"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format"
)

// InputsOfModel returns the inputs of an ONNX file, without outputs and sizes of open dimensions. Errors:
// CodeInvalid; CodeUnsafe for a format that runs code.
func InputsOfModel(file string) (validators.Interface, error) {
	d, err := OpenDraft(file)
	return d.iface, err
}

// InputsOfSpec returns the inputs of the ONNX file that a spec names, with the sizes of open dimensions that
// it says. Errors: CodeInvalid, also for a source of another format; CodeUnsafe for one that runs code.
func InputsOfSpec(s *spec.Spec) (validators.Interface, error) {
	where := s.Source.Path.Written
	if s.Source.Format != spec.FormatONNX {
		return validators.Interface{}, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s: source %s has the format %s: want onnx, which says the inputs", s.File, where, s.Source.Format),
			"a folder of .npz files whose arrays are called as the inputs that mlpromote plan prints is a folder of cases as it is (docs/how-to/cases.md)")
	}
	var model *format.Model
	files := specFiles{s.Files}
	err := files.look(where, func(f *os.File) (err error) {
		model, err = files.readModel(s.Source, f)
		return err
	})
	if err != nil {
		return validators.Interface{}, err
	}
	iface, err := interfaceOf(&format.Model{Inputs: model.Inputs})
	if err != nil {
		return validators.Interface{}, registry.Errorf(registry.CodeInvalid, "%s: %w", where, err)
	}
	sizes := make(map[string]validators.DimRange)
	for _, symbol := range iface.Symbols() {
		if size, ok := s.Shapes.Dims()[symbol]; ok {
			sizes[symbol] = size
		}
	}
	return iface.WithDims(sizes)
}
