package draft

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/registry/toolchains"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/gguf"
	"mlpromote.dev/mlpromote/validators/format/huggingface"
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/format/torch"
)

// Model is a model that a first spec is written for.
type Model struct {
	file  string // as a person named it
	model *onnx.Model
	// iface has the inputs, and of a model that was imported the outputs too: of an ONNX file a
	// build may find shapes that the file does not say.
	iface validators.Interface
	// unnamed are the symbols of leading dimensions that iface has as one batch, since the graph does not name them.
	unnamed []string
	source  spec.Source  // without its path
	assets  []string     // files in the folder of the model that every engine needs
	notes   []string     // what a person should know of the model
	gguf    *gguf.Header // nil for other formats
}

// TrustPickle is what a person trusts in place of types: the pickles of a file that init otherwise refuses.
const TrustPickle = "pickle"

// FormatOf recognizes the format of a model's file or folder by its content. Errors:
// CodeInvalid for what no spec can be written for, with what to do; CodeUnsafe for a pickle. A format beside that error is one of
// a file that can be drafted by who trusts its pickles ([TrustPickle]).
func FormatOf(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "model: %w", err)
	}
	if info.IsDir() {
		return draftFolder(file)
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "model: %w", err)
	}
	defer f.Close()
	kind := format.Sniff(f, info.Size())
	switch kind {
	case format.CodeArchive, format.Keras:
		if format.IsKeras(f, info.Size()) {
			return spec.FormatKeras, nil // which the build checks
		}
	case format.GGUF:
		if err := checkHeader(file, f, info.Size()); err != nil {
			return "", err
		}
		return spec.FormatGGUF, nil
	case format.Safetensors:
		return "", byHand(registry.Errorf(registry.CodeInvalid, "%s: its bytes are %s, which has weights and no network", file, kind.Describe()),
			"", "source: {path: FILE, format: safetensors, architecture: {...}}")
	case format.SavedModel:
		return "", registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s: its bytes are %s", file, kind.Describe()),
			"name its folder: mlpromote init %s", filepath.Dir(file))
	case format.PickleZip:
		if torch.IsExport(f, info.Size()) {
			return spec.FormatTorchExport, registry.WithHint(registry.Errorf(registry.CodeUnsafe,
				"%s: its bytes are a program of PyTorch, with pickles that can run code when it is loaded", file),
				"%smlpromote init %s --trust %s", ifKnown, file, TrustPickle)
		}
		if torch.IsScript(f, info.Size()) {
			return "", byHand(registry.Errorf(registry.CodeUnsafe,
				"%s: its bytes are TorchScript, which is code, and does not say what its inputs are", file),
				ifKnown, "source: {path: FILE, format: torchscript, trust: {pickle: true}, "+
					"inputs: [{name: x, dtype: float32, shape: [batch, 3, 224, 224]}]}")
		}
		return "", registry.WithHint(registry.Errorf(registry.CodeUnsafe,
			"%s: its bytes are %s, which can run code when it is loaded", file, kind.Describe()), ingest.ExportTorch)
	case format.Pickle:
		if hint := boosterHint(f); hint != "" {
			return "", registry.WithHint(
				registry.Errorf(registry.CodeUnsafe, "%s: its bytes are %s, which can run code when it is loaded", file, kind.Describe()), "%s", hint)
		}
		return "", byHand(registry.Errorf(registry.CodeUnsafe, "%s: its bytes are %s, which can run code when it is loaded", file, kind.Describe()),
			"save the model with skops, or, "+ifKnown, "source: {path: FILE, format: pickle, trust: {pickle: true}}")
	}
	return formatOf(kind), nil
}

// draftFolder recognizes the format of a model's folder.
func draftFolder(folder string) (string, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "model: %w", err)
	}
	defer root.Close()
	if _, err := root.Stat("saved_model.pb"); err == nil {
		return spec.FormatSavedModel, nil
	}
	if huggingface.Is(root) {
		return spec.FormatHuggingFace, nil
	}
	return "", registry.Errorf(registry.CodeInvalid, "%s: a folder without saved_model.pb, so no SavedModel, "+
		"and without a config.json that says model_type or architectures: "+
		"want a model's file, or the folder of a SavedModel or of save_pretrained of transformers", folder)
}

// formatOf is the format that a spec has for files of a kind: ONNX, or what its reader refuses, where there is none.
func formatOf(kind format.Kind) string {
	for name, k := range ingest.SourceKinds {
		if k == kind {
			return name
		}
	}
	return spec.FormatONNX
}

// checkHeader wants a GGUF file whose header can be read.
func checkHeader(file string, f io.ReaderAt, size int64) error {
	if _, err := gguf.Read(f, size); err != nil {
		return registry.Errorf(registry.CodeOf(err), "%s: %w", file, err)
	}
	return nil
}

// boosterHint says how to save a booster that was pickled; empty for other pickles. Compressed ones do not
// give away what is in them.
func boosterHint(f io.ReaderAt) string {
	head := make([]byte, 1<<16)
	n, _ := f.ReadAt(head, 0)
	switch {
	case bytes.Contains(head[:n], []byte("xgboost.")):
		return `save the booster where it was trained: model.save_model("model.json"), and name that file`
	case bytes.Contains(head[:n], []byte("lightgbm.")):
		return `save the booster where it was trained: model.booster_.save_model("model.txt"), and name that file`
	}
	return ""
}

// ifKnown is when a person may trust a file whose bytes can run code.
const ifKnown = "if you know where the file is from, "

// byHand adds what a person has to write into a spec, and when: init writes none for such a file.
func byHand(err error, when, source string) error {
	return registry.WithHint(err, "%swrite a spec with %s (docs/reference/spec.md): init does not write one for it", when, source)
}

// Open reads an ONNX model.
func Open(file string) (Model, error) {
	model, err := ingest.OpenModel(file)
	if err != nil {
		return Model{}, registry.WithHint(err,
			"init reads ONNX, skops, XGBoost (.json, .ubj), LightGBM (.txt), PMML, TensorFlow Lite, SavedModels, .keras, jax.export, GGUF and folders of transformers; "+
				"a spec of your own can name other models: source: {path: FILE, format: %s} (docs/reference/spec.md); PyTorch exports ONNX",
			strings.Join(spec.Formats()[1:], "|"))
	}
	iface, err := run.InterfaceOf(&onnx.Model{Inputs: model.Inputs})
	if err == nil {
		err = checkOutputs(model)
	}
	if err != nil {
		return Model{}, registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
	}
	iface, unnamed := run.WithBatch(model, iface)
	return Model{file: file, model: model, iface: iface, unnamed: unnamed, source: spec.Source{Format: spec.FormatONNX}}, nil
}

// From returns the model with the place that it was fetched from; nil for none.
func (d Model) From(origin *spec.Origin) Model {
	d.source.Origin = origin
	return d
}

// FurtherFiles lists the files with weights that an ONNX file names. Other models have none.
func FurtherFiles(file string) ([]string, error) {
	found, err := FormatOf(file)
	if err == nil && found == spec.FormatONNX {
		model, err := format.OpenONNX(file, bound.Limits{})
		if err != nil {
			return nil, err
		}
		return slices.Compact(slices.Sorted(slices.Values(model.ExternalData))), nil
	}
	return nil, nil // the draft refuses a file that it cannot read
}

// checkOutputs refuses a model with an output that no build can compare. Outputs without a shape may
// get one.
func checkOutputs(model *onnx.Model) error {
	for _, output := range model.Outputs {
		if output.Shape == nil && !strings.Contains(output.DType, "(") {
			output.Shape = []onnx.Dim{}
		}
		if _, err := run.TensorInfos("output", []onnx.Value{output}); err != nil {
			return run.WayOut(model, err)
		}
	}
	return nil
}

// Import reads a model in a format that has to be imported, by the toolchain of that format.
// trusted are types in a skops file that may be loaded, or [TrustPickle]. Errors: those of the importer.
func Import(ctx context.Context, env *run.Env, file, sourceFormat string, trusted []string) (Model, error) {
	folder, err := confined.New(filepath.Dir(file), "the folder of the model")
	if err != nil {
		return Model{}, err
	}
	temp, err := tempdir.New("init")
	if err != nil {
		return Model{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	d := Model{file: file, source: spec.Source{Format: sourceFormat, Trust: trustOf(trusted)}}
	source := d.source
	source.Path.Written = filepath.Base(file)
	m, err := ingest.ImportSource(ctx, env, &spec.Spec{Files: folder, Source: source}, run.Worker{Scratch: scratch, Budgets: nil})
	if err != nil {
		return Model{}, err
	}
	d.model = m.Model
	if sourceFormat == spec.FormatHuggingFace {
		d.assets = ingest.TokenizerOf(m.Source.Files)
		d.notes = ingest.TokenizerNotes(d.assets)
	}
	if sourceFormat == spec.FormatGGUF {
		d.gguf, d.notes = &m.Source.Gguf, []string{fmt.Sprintf("the file is %s", m.Source.Gguf)}
	}
	if d.iface, err = run.InterfaceOf(m.Model); err != nil {
		return Model{}, registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
	}
	if d.iface, err = d.iface.WithKinds(kindsGuessed(d.iface, m.Model)); err != nil {
		return Model{}, err
	}
	inputs, outputs := make(map[string][]string), make(map[string][]string)
	d.notes = append(d.notes, m.AddNames(d.iface, inputs, outputs)...)
	d.iface, err = d.iface.WithNames(inputs, outputs)
	d.iface = m.Allowed().Drafted(d.iface)
	d.iface.AnyNumbers = spec.TakesAnyNumbers(sourceFormat)
	return d, err
}

// trustOf is what a spec says of what a person trusts.
func trustOf(trusted []string) spec.Trust {
	if slices.Equal(trusted, []string{TrustPickle}) {
		return spec.Trust{Pickle: true}
	}
	return spec.Trust{Types: trusted}
}

// Draft is a commented spec for the model, as it would lie at specFile, with one
// target such as "linux/amd64/v1". Where cases were imported, casesFolder has them; nil
// generates them. Errors: CodeInvalid also for a model that does not lie below the folder of
// specFile, since no spec can name it.
func (d Model) Draft(specFile, target string, imported *cases.Imported, casesFolder string) (Drafted, error) {
	relative, err := ingest.Below(specFile, d.file, spec.InFolder(d.source.Format))
	if err != nil {
		return Drafted{}, err
	}
	options := spec.DraftOptions{Source: relative, Format: d.source.Format, Trusted: d.source.Trust.Types, TrustPickle: d.source.Trust.Pickle,
		Target: target, Origin: d.source.Origin}
	for _, name := range d.assets {
		options.Assets = append(options.Assets, path.Join(relative, name))
	}
	uses := d.model.Uses()
	options.Interface, options.Sizes = proposedSizes(d.iface, uses)
	if d.gguf != nil {
		options.Interface = ingest.WithinContext(options.Interface, *d.gguf)
	}
	outputs := d.draftedOutputs()
	options.Kinds = draftedKinds(d.iface.Inputs, outputs, d.model.Producers)
	if imported != nil {
		options.Interface, options.Labels = withSizesOf(options.Interface, imported.Interface), imported.Labels
		options.Kinds = kindsByLabels(options.Kinds, outputs, imported.Facts)
		options.Accuracy, options.NoAccuracy = proposedAccuracy(options.Kinds, outputs, *imported)
		if options.Cases, err = ingest.Below(specFile, casesFolder, true); err != nil {
			return Drafted{}, err
		}
	}
	if q := d.model.Quantized(); q.Nodes > 0 && d.source.Format == spec.FormatONNX {
		options.Quantized = ingest.PrecisionOf(q)
	}
	if d.gguf != nil {
		options.Quantized, options.Toolchain = ingest.GgufPrecision(*d.gguf), toolchains.AsIs(spec.FormatGGUF)
	}
	drafted := Drafted{Warnings: d.notes}
	if imported == nil {
		drafted.Warnings = slices.Concat(drafted.Warnings, draftWarnings(options.Interface, uses))
	}
	if d.source.Format == spec.FormatONNX && d.model.Producer == "skl2onnx" && (imported == nil || len(imported.Expected) == 0) {
		drafted.Warnings = append(drafted.Warnings,
			"skl2onnx exported the model, so engines are compared with its export: hand in the pipeline itself, skops.io.dump(pipeline, \"NAME.skops\"), to compare them with what scikit-learn computes")
	}
	if input, ok := d.iface.TakesText(); ok && imported == nil {
		drafted.Warnings = append(drafted.Warnings,
			"input \""+input+"\" takes text, for which no cases can be generated: record some, and name them with init --cases FILE or in cases:")
	}
	drafted.Text, err = spec.Draft(options)
	return drafted, err
}

// Check refuses, before anything is installed that reads the model, what no draft can be made of: a model that no spec at specFile can
// name, and a file of cases, if there is one, that cannot be imported whatever the model is. Errors: CodeInvalid; CodeUnsafe for pickles.
func Check(specFile, model, casesFile, label string) error {
	info, err := os.Stat(model)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "model: %w", err)
	}
	if _, err := ingest.Below(specFile, model, info.IsDir()); err != nil {
		return err
	}
	switch {
	case casesFile != "":
		return cases.Import{File: casesFile, Label: label}.Check()
	case label != "":
		return registry.Errorf(registry.CodeInvalid, "--label %s: want --cases FILE with it", label)
	}
	return nil
}

// ImportCases runs a [cases.Import] for the model, into a new folder.
func (d Model) ImportCases(file, label, to string) (cases.Imported, error) {
	return cases.Import{Inputs: d.withClasses(), File: file, Label: label, To: to}.Run()
}

// withClasses is the interface with the outputs of a classifier in ONNX, so that labels can be names of its classes.
func (d Model) withClasses() validators.Interface {
	if len(d.iface.Outputs) > 0 || d.model == nil || d.model.Classes == nil {
		return d.iface
	}
	iface := d.iface
	iface.Outputs = d.draftedOutputs()
	named, err := iface.WithKinds(kindsGuessed(iface, d.model))
	if err != nil {
		return d.iface
	}
	outputs := make(map[string][]string)
	ingest.Model{Model: d.model}.AddNames(named, make(map[string][]string), outputs)
	if named, err = named.WithNames(nil, outputs); err != nil || len(outputs) == 0 {
		return d.iface
	}
	return named
}

// draftedOutputs are the outputs whose shapes a model says. The kinds of others are guessed when a build has found their
// shapes.
func (d Model) draftedOutputs() []validators.TensorInfo {
	var outputs []validators.TensorInfo
	for _, output := range d.model.Outputs {
		if infos, err := run.TensorInfos("output", []onnx.Value{output}); err == nil {
			outputs = append(outputs, infos...)
		}
	}
	if d.unnamed != nil {
		named, _ := run.WithBatch(d.model, validators.Interface{Outputs: outputs})
		outputs = named.Outputs
	}
	isOpen := func(t validators.TensorInfo) bool {
		at := slices.IndexFunc(d.model.Outputs, func(v onnx.Value) bool { return v.Name == t.Name })
		for axis, dim := range d.model.Outputs[at].Shape {
			if !dim.Known && dim.Param == "" && (axis > 0 || d.unnamed == nil) {
				return true
			}
		}
		return false
	}
	return slices.DeleteFunc(outputs, isOpen)
}

// draftedKinds guesses the kinds of outputs.
func draftedKinds(inputs, outputs []validators.TensorInfo, producers map[string]string) []spec.DraftedKind {
	var drafted []spec.DraftedKind
	guesses := validators.Interface{Inputs: inputs, Outputs: outputs}.GuessKinds(producers)
	for _, output := range outputs {
		drafted = append(drafted, spec.DraftedKind{Output: output.Name, Guess: guesses[output.Name]})
	}
	return drafted
}

// kindsGuessed are guesses for all outputs.
func kindsGuessed(iface validators.Interface, model *onnx.Model) map[string]validators.Kind {
	kinds := make(map[string]validators.Kind)
	for name, guess := range iface.GuessKinds(model.Producers) {
		kinds[name] = guess.Kind
	}
	return kinds
}

// InputsOfModel returns the inputs of an ONNX file, without outputs and sizes of open dimensions. Errors:
// CodeInvalid; CodeUnsafe for a format that runs code.
func InputsOfModel(file string) (validators.Interface, error) {
	d, err := Open(file)
	return d.iface, err
}
