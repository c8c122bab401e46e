package pipeline

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
)

// source is the model that a spec names, past the gate for untrusted formats.
type source struct {
	files []toolchain.Input // the file that the spec names first, then what belongs to it
	// operators are libraries that the model needs, as files of an engine are called.
	operators []toolchain.Input
	model     *format.Model // nil where the format is not ONNX
}

// openSource reads the source of a spec past the gate. Errors: those of gateSource.
func openSource(s spec.Source) (source, error) {
	if s.Format == spec.FormatSavedModel {
		files, err := savedInputs(s.Path.Absolute)
		return source{files: files}, err
	}
	model, err := gateSource(s)
	if err != nil {
		return source{}, err
	}
	if model == nil {
		in, err := toolchain.FileInput(toolchain.RoleModel, foreignName(s), s.Path.Absolute)
		return source{files: []toolchain.Input{in}}, err
	}
	files, err := modelInputs(s.Path.Absolute, model.ExternalData)
	if err != nil {
		return source{}, err
	}
	operators, err := operatorInputs(s.Operators)
	return source{files, operators, model}, err
}

// operatorsDir is the folder of an engine that its libraries of operators are in.
const operatorsDir = "operators"

// operatorInputs lets the libraries that the spec names pass: native code, which is asked
// for by name, and nothing else.
func operatorInputs(paths []spec.Path) ([]toolchain.Input, error) {
	var inputs []toolchain.Input
	for _, p := range paths {
		if err := format.Check(p.Absolute, format.NativeObject, format.Limits{}); err != nil {
			return nil, registry.Errorf(registry.CodeOf(err), "source.operators: %w", err)
		}
		in, err := toolchain.FileInput(toolchain.RoleOperators, path.Join(operatorsDir, filepath.Base(p.Absolute)), p.Absolute)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// gateSource lets the source of a spec pass, and reads it if it is ONNX; for other formats
// the model is nil. Errors: CodeUnsafe for what runs code when it is loaded and is not
// trusted; CodeInvalid for what is not what the spec says it is.
func gateSource(s spec.Source) (*format.Model, error) {
	switch s.Format {
	case spec.FormatONNX:
		return readModel(s.Path.Absolute, len(s.Operators) > 0)
	case spec.FormatSkops:
		return nil, format.Check(s.Path.Absolute, format.Skops, format.Limits{})
	case spec.FormatSafetensors:
		return nil, format.Check(s.Path.Absolute, format.Safetensors, format.Limits{})
	case spec.FormatTFLite:
		return nil, format.Check(s.Path.Absolute, format.TFLite, format.Limits{})
	case spec.FormatSavedModel:
		_, err := format.CheckSavedModel(s.Path.Absolute, format.Limits{})
		return nil, err
	case spec.FormatPickle:
		return nil, checkPickle(s)
	}
	return nil, registry.Errorf(registry.CodeInvalid, "source format %q cannot be imported", s.Format)
}

// foreignName is what an importer sees the file as, whatever it is called here.
func foreignName(s spec.Source) string { return "source." + s.Format }

// savedInputs lets the folder of a SavedModel pass: its files, below the folder that the
// importer sees it as.
func savedInputs(dir string) ([]toolchain.Input, error) {
	names, err := format.CheckSavedModel(dir, format.Limits{})
	if err != nil {
		return nil, err
	}
	var inputs []toolchain.Input
	for _, name := range names {
		in, err := toolchain.FileInput(toolchain.RoleModel, path.Join("source", name), filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// checkPickle lets a pickle pass that a person vouches for, for the importer alone.
func checkPickle(s spec.Source) error {
	if !s.Trust.Pickle {
		return registry.WithHint(
			registry.Errorf(registry.CodeUnsafe, "%s: a pickle can run code when it is loaded, and the spec does not trust this one", s.Path.Written),
			"save the model with skops (format: skops), or, if you know where the file is from, write trust: {pickle: true}")
	}
	f, err := os.Open(s.Path.Absolute)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "source: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if kind := format.Sniff(f, info.Size()); kind != format.Pickle {
		return registry.Errorf(registry.CodeInvalid, "%s: its bytes are %s, expected %s", s.Path.Absolute, kind.Describe(), format.Pickle.Describe())
	}
	return nil
}

// readModel reads an ONNX file past the gate. Operators that ONNX Runtime does not have
// are allowed where libraries come with the model: the run of the reference finds out
// whether they have them.
func readModel(file string, operators bool) (*format.Model, error) {
	model, err := format.OpenONNX(file, format.Limits{})
	if err != nil {
		return nil, err
	}
	if err := format.CheckExternalData(filepath.Dir(file), model); err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "%s: %w", file, err)
	}
	if domains := model.CustomDomains(); len(domains) > 0 && !operators {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: operators of %s need a library that onnxruntime does not have: name it in source: {path: ..., operators: [LIBRARY]}", file, strings.Join(domains, ", "))
	}
	if _, err := model.Runtime(); err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
	}
	return model, nil
}
