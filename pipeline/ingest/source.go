package ingest

import (
	"os"
	"path"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/gguf"
	"mlpromote.dev/mlpromote/validators/format/huggingface"
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/format/savedmodel"
	"mlpromote.dev/mlpromote/validators/format/torch"
)

// TokenizerOf are the files of a folder of transformers that turn text, images or sound into tensors.
func TokenizerOf(files []toolchain.Input) []string {
	var names []string
	for _, in := range files {
		if name := path.Base(in.Name); huggingface.IsTokenizer(name) {
			names = append(names, name)
		}
	}
	return names
}

// TokenizerNotes says that a folder of transformers has no tokenizer, where it has none.
func TokenizerNotes(files []string) []string {
	if len(files) > 0 {
		return nil
	}
	return []string{"the folder of the model has no files of a tokenizer or processor, so no engine carries them: " +
		"nodes turn text, images or sound into the inputs of the model by themselves"}
}

// source is the model that a spec names, through the check of untrusted formats.
type source struct {
	Files []toolchain.Input // the file that the spec names first, then what belongs to it
	// operators are libraries that the model needs, as files of an engine are called.
	Operators []toolchain.Input
	Model     *onnx.Model // nil where the format is not ONNX
	Gguf      gguf.Header // zero where the format is not GGUF
}

// openSource reads the source of a spec after the format check. Errors: those of checkSource.
func openSource(files specFiles, s spec.Source) (source, error) {
	if spec.InFolder(s.Format) {
		inputs, err := folderInputs(files, s)
		return source{Files: inputs}, err
	}
	if s.Format == spec.FormatGGUF {
		var header gguf.Header
		in, err := files.input(s.Path.Written, toolchain.RoleModel, foreignName(s), func(f *os.File) (err error) {
			header, err = checkGGUFFile(f)
			return err
		})
		return source{Files: []toolchain.Input{in}, Gguf: header}, err
	}
	if s.Format != spec.FormatONNX {
		in, err := files.input(s.Path.Written, toolchain.RoleModel,
			foreignName(s), func(f *os.File) error { return checkForeign(s, f) })
		return source{Files: []toolchain.Input{in}}, err
	}
	var model *onnx.Model
	first, err := files.input(s.Path.Written, toolchain.RoleModel, run.ModelFile, func(f *os.File) (err error) {
		model, err = files.readModel(s, f)
		return err
	})
	if err != nil {
		return source{}, err
	}
	inputs := []toolchain.Input{first}
	for _, name := range model.ExternalData {
		in, err := files.input(beside(s.Path.Written, name), toolchain.RoleModel, path.Clean(name), nil)
		if err != nil {
			return source{}, err
		}
		inputs = append(inputs, in)
	}
	operators, err := operatorInputs(files, s.Operators)
	return source{Files: inputs, Operators: operators, Model: model}, err
}

// operatorsDir is the folder of an engine that its libraries of operators are in.
const operatorsDir = "operators"

// operatorInputs lets the libraries that the spec names pass: native code, which is asked
// for by name, and nothing else.
func operatorInputs(files specFiles, paths []spec.Path) ([]toolchain.Input, error) {
	var inputs []toolchain.Input
	for _, p := range paths {
		in, err := files.input(p.Written, toolchain.RoleOperators,
			path.Join(operatorsDir, path.Base(p.Written)), func(f *os.File) error {
				return format.CheckFile(f, format.NativeObject, bound.Limits{})
			})
		if err != nil {
			return nil, inside("source.operators", err)
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// checkSource lets the source of a spec pass. Errors: CodeUnsafe for what runs code when it
// is loaded and is not trusted; CodeInvalid for what is not what the spec says it is.
func checkSource(files specFiles, s spec.Source) error {
	switch s.Format {
	case spec.FormatSavedModel, spec.FormatHuggingFace:
		_, err := checkFolder(files, s)
		return err
	case spec.FormatONNX:
		return files.look(s.Path.Written, func(f *os.File) error {
			_, err := files.readModel(s, f)
			return err
		})
	}
	return files.look(s.Path.Written, func(f *os.File) error { return checkForeign(s, f) })
}

// SourceKinds are the kinds of files by format, where the gate of that kind is all that a source needs.
var SourceKinds = map[string]format.Kind{
	spec.FormatSkops: format.Skops, spec.FormatSafetensors: format.Safetensors, spec.FormatTFLite: format.TFLite, spec.FormatXGBoost: format.XGBoost,
	spec.FormatLightGBM: format.LightGBM, spec.FormatPMML: format.PMML, spec.FormatJAX: format.JAXExport,
}

// checkForeign is the check of sources of one file in formats other than ONNX.
func checkForeign(s spec.Source, f *os.File) error {
	switch s.Format {
	case spec.FormatGGUF:
		_, err := checkGGUFFile(f)
		return err
	case spec.FormatKeras:
		return format.CheckKeras(f, bound.Limits{})
	case spec.FormatTorchExport, spec.FormatTorchScript:
		return checkTorch(s, f)
	case spec.FormatPickle:
		return checkPickle(s, f)
	}
	if kind, ok := SourceKinds[s.Format]; ok {
		return format.CheckFile(f, kind, bound.Limits{})
	}
	return registry.Errorf(registry.CodeInvalid, "source format %q cannot be imported", s.Format)
}

// foreignName is what an importer sees the file as, whatever it is called here.
func foreignName(s spec.Source) string { return "source." + s.Format }

// checkFolder lets the folder of a model pass, and gives the names of its files.
func checkFolder(files specFiles, s spec.Source) ([]string, error) {
	root, err := files.OpenRoot(s.Path.Written)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if s.Format == spec.FormatHuggingFace {
		return huggingface.Check(root, bound.Limits{})
	}
	return savedmodel.CheckIn(root, bound.Limits{})
}

// folderInputs are the files of a model in a folder, below the folder that the importer sees it as.
func folderInputs(files specFiles, s spec.Source) ([]toolchain.Input, error) {
	names, err := checkFolder(files, s)
	if err != nil {
		return nil, err
	}
	var inputs []toolchain.Input
	for _, name := range names {
		in, err := files.input(path.Join(s.Path.Written, name), toolchain.RoleModel, path.Join("source", name), nil)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// checkPickle lets a pickle pass that a person vouches for, for the importer alone.
func checkPickle(s spec.Source, f *os.File) error {
	if !s.Trust.Pickle {
		return registry.WithHint(
			registry.Errorf(registry.CodeUnsafe,
				"%s: a pickle can run code when it is loaded, and the spec does not trust this one", s.Path.Written),
			"save the model with skops (format: skops), or, if you know where the file is from, write trust: {pickle: true}")
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if kind := format.Sniff(f, info.Size()); kind != format.Pickle {
		return registry.Errorf(registry.CodeInvalid,
			"%s: its bytes are %s, expected %s", f.Name(), kind.Describe(), format.Pickle.Describe())
	}
	return nil
}

// checkTorch lets a program of PyTorch pass that a person vouches for, for the importer alone: PyTorch
// unpickles what a .pt2 archive has beside the program, and TorchScript is code.
func checkTorch(s spec.Source, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	is, wanted := torch.IsExport, "a program that torch.export saved"
	if s.Format == spec.FormatTorchScript {
		is, wanted = torch.IsScript, "a module that torch.jit.save wrote"
	}
	if !is(f, info.Size()) {
		kind := format.Sniff(f, info.Size())
		return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s: its bytes are %s, expected %s", f.Name(), kind.Describe(), wanted), ExportTorch)
	}
	if !s.Trust.Pickle {
		return registry.WithHint(
			registry.Errorf(registry.CodeUnsafe,
				"%s: %s holds pickles and can run code when it is loaded, and the spec does not trust this one", s.Path.Written, wanted),
			"if you know where the file is from, write trust: {pickle: true}; or export the model to ONNX: torch.onnx.export(model, args, \"model.onnx\")")
	}
	return nil
}

// ExportTorch is the way out for what PyTorch saves otherwise.
const ExportTorch = "weights alone are no network: where the model is at hand, " +
	"torch.export.save(torch.export.export(model, args), \"model.pt2\") writes a program, " +
	"and torch.onnx.export(model, args, \"model.onnx\") an ONNX model"

// readModel reads the source of a spec, open as f, after the format check. External data lies in
// the folder of the path that the spec names, whatever links that leads through.
func (n specFiles) readModel(s spec.Source, f *os.File) (*onnx.Model, error) {
	folder, err := n.OpenRoot(path.Dir(s.Path.Written))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return readModel(f, folder, len(s.Operators) > 0)
}

// readModel reads an ONNX file after the format check. Operators that ONNX Runtime does not have
// are allowed where libraries come with the model: the run of the reference finds out
// whether they have them.
func readModel(f *os.File, folder *os.Root, operators bool) (*onnx.Model, error) {
	file := f.Name()
	model, err := format.ReadONNXFile(f, bound.Limits{})
	if err != nil {
		return nil, err
	}
	if err := onnx.CheckExternalDataIn(folder, model); err != nil {
		return nil, inside(file, err)
	}
	if domains := model.CustomDomains(); len(domains) > 0 && !operators {
		return nil, registry.Errorf(registry.CodeInvalid,
			"%s: operators of %s need a library that onnxruntime does not have: name it in source: {path: ..., operators: [LIBRARY]}",
			file, strings.Join(domains, ", "))
	}
	if _, err := model.Runtime(); err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
	}
	return model, nil
}
