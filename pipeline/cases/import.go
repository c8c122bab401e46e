package cases

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// importable are the files that cases are made of.
const importable = ".npz, .csv, .parquet or .safetensors"

// Import configures which cases to take.
type Import struct {
	Inputs validators.Interface // of the model. Open dimensions that are not in Dims get the sizes of the cases
	File   string               // .npz, .csv, .parquet or .safetensors
	// Label is the name of the tensor or column with the labels. Without it, "label" or "labels" is
	// taken if there is one.
	Label string
	To    string // folder for the shard
	Add   bool   // to the cases that are in the folder; else it has to be new or empty
}

// Run reads the cases, converts them to the types and shapes of the model's inputs, and writes them as one
// shard. Errors: CodeInvalid for what does not fit the model; CodeUnsafe for pickles.
func (i Import) Run() (Imported, error) {
	folder, err := Look(i.To, i.Add)
	if err != nil {
		return Imported{}, err
	}
	given := i.Inputs.Dims
	open, err := i.Inputs.WithDims(nil)
	if err != nil {
		return Imported{}, err
	}
	i.Inputs.Dims = open.Dims
	maps.Copy(i.Inputs.Dims, given)
	found, notes, err := readTensors(i.File, i.Label, i.Inputs)
	if err != nil {
		return Imported{}, err
	}
	texts, err := textsIn(i.File)
	if err != nil {
		return Imported{}, err
	}
	im := importing{Imported: Imported{Interface: i.Inputs, Notes: notes}, found: found, texts: texts, given: given}
	shard, err := im.shard(i.Label)
	if err != nil {
		return Imported{}, registry.Errorf(registry.CodeOf(err), "%s: %w", i.File, err)
	}
	if signature := signatureOf(shard); folder.Signature != "" && folder.Signature != signature {
		return Imported{}, registry.Errorf(registry.CodeInvalid,
			"%s: its cases are %s: those in %s are %s", i.File, signature, i.To, folder.Signature)
	}
	err = im.write(shard, i.File, i.To, folder.Next) // counts the cases
	return im.Imported, err
}

// Check refuses what [Import.Run] would refuse whatever the model is: a folder that holds something, a file that cannot
// be read, and labels that are not in it. It takes no time except for installing the importer of a model. Errors: as
// Run.
func (i Import) Check() error {
	if _, err := Look(i.To, i.Add); err != nil {
		return err
	}
	names, err := namesIn(i.File)
	if err != nil || i.Label == "" || slices.Contains(names, i.Label) {
		return err
	}
	return registry.Errorf(registry.CodeInvalid, "%s: no labels %q: it holds %s", i.File, i.Label, strings.Join(names, ", "))
}

// namesIn are the names of the tensors or columns of a file.
func namesIn(file string) ([]string, error) {
	switch strings.ToLower(filepath.Ext(file)) {
	case spec.CSV:
		return namesInTable(file)
	case spec.Parquet:
		return namesInParquet(file)
	}
	tensors, _, err := readTensors(file, "", validators.Interface{})
	return slices.Sorted(maps.Keys(tensors)), err
}

func signatureOf(shard map[string]tensor.Tensor) string { return Row(shard).Signature() }

// readTensors reads the tensors of a file by its extension.
func readTensors(file, label string, iface validators.Interface) (tensors map[string]tensor.Tensor, notes []string, err error) {
	switch extension := strings.ToLower(filepath.Ext(file)); extension {
	case spec.CSV:
		return readTable(file, label, iface)
	case ".safetensors":
		tensors, err := tensorfile.ReadFile(file, tensorfile.Limits{})
		return tensors, nil, badCases(file, err)
	case ".npz":
		tensors, err := readNpz(file)
		return tensors, nil, err
	case spec.Parquet:
		return readParquet(file, label, iface)
	default:
		return nil, nil, registry.WithHint(registry.Errorf(registry.CodeInvalid,
			"%s: cannot be imported: want %s", file, importable),
			"a folder of cases goes into the spec as it is: cases: {path: FOLDER/, labels: NAME}")
	}
}

// textsIn are the names of the arrays of a file that are text.
func textsIn(file string) (map[string]bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, badCases(file, err)
	}
	defer f.Close()
	return textsOf(f)
}

// shard gives every input its tensor, and the labels theirs.
func (im *importing) shard(label string) (map[string]tensor.Tensor, error) {
	shard := make(map[string]tensor.Tensor)
	if err := im.takeLabels(label, shard); err != nil {
		return nil, err
	}
	for _, input := range im.Interface.Inputs {
		t, name, err := im.find(input.Name)
		if err != nil {
			return nil, err
		}
		if shard[input.Name], err = im.convert(t, name, input); err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "tensor %q: %w", name, err)
		}
		delete(im.found, name)
	}
	im.noteAlike()
	for _, name := range slices.Sorted(maps.Keys(im.found)) {
		if output, ok := strings.CutPrefix(name, ExpectedPrefix); ok {
			shard[name], im.Expected = im.found[name], append(im.Expected, output)
			continue
		}
		im.note("left out %q, which is not an input of the model", name)
	}
	return shard, nil
}

// takeLabels moves the labels into the shard: as int64, or those that are not all whole as they are.
func (im *importing) takeLabels(label string, shard map[string]tensor.Tensor) error {
	names := []string{label}
	if label == "" {
		names = labelNames
	}
	for _, name := range names {
		t, ok := im.found[name]
		_, isInput := im.Interface.Input(name)
		switch {
		case !ok && label != "":
			return registry.Errorf(registry.CodeInvalid,
				"no labels %q: it holds %s", label, strings.Join(slices.Sorted(maps.Keys(im.found)), ", "))
		case isInput && label != "":
			return registry.Errorf(registry.CodeInvalid, "%q is an input of the model, so it cannot be the labels", label)
		case !ok || isInput:
			continue
		}
		whole, err := im.wholeLabels(name, t)
		if err != nil && t.DType.Class() == tensor.ClassFloat {
			im.note("labels %q are not whole, so that they are no classes: kept as numbers", name)
			whole, err = t, nil
		}
		if err != nil {
			return registry.WithHint(registry.Errorf(registry.CodeInvalid, "labels %q: %w", name, err),
				"number the classes from 0, in the order of the model's output")
		}
		if n := len(whole.Shape); n == 2 && whole.Shape[1] == 1 {
			whole.Shape = whole.Shape[:1]
		}
		shard[name], im.Labels = whole, name
		if len(whole.Shape) > 0 { // else they are refused where they are checked
			im.Facts, im.Values = factsOf(whole), whole
		}
		delete(im.found, name)
		return nil
	}
	return nil
}

// wholeLabels are labels as int64: of text, the numbers of the classes that the model names so.
func (im *importing) wholeLabels(name string, t tensor.Tensor) (tensor.Tensor, error) {
	if !im.texts[name] {
		return castTo(t, tensor.Int64)
	}
	classes := classesOf(im.Interface)
	if classes == nil {
		return tensor.Tensor{}, registry.Errorf(registry.CodeInvalid, "they are text, and the model does not name its classes")
	}
	texts, err := tensor.UnpackText(t)
	if err != nil {
		return tensor.Tensor{}, TensorError(err)
	}
	numbers, err := classNumbers(name, texts, classes)
	if err != nil {
		return tensor.Tensor{}, err
	}
	numbers.Shape = t.Shape[:len(t.Shape)-1]
	return castTo(numbers, tensor.Int64)
}

// find finds the tensor of an input: the one of its name, or the only one there is for the
// only input.
func (im *importing) find(input string) (tensor.Tensor, string, error) {
	if t, ok := im.found[input]; ok {
		return t, input, nil
	}
	if len(im.Interface.Inputs) == 1 && len(im.found) == 1 {
		for name, t := range im.found {
			im.note("took %q for the model's input %q", name, input)
			return t, name, nil
		}
	}
	names := slices.Sorted(maps.Keys(im.found))
	return tensor.Tensor{}, "", registry.Errorf(registry.CodeInvalid,
		"nothing for the model's input %q: except for labels it holds %s", input, strings.Join(names, ", "))
}

// write writes the shard, made of the user's file, into a folder and checks it as a build will.
func (im *importing) write(tensors map[string]tensor.Tensor, file, to string, number int) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	path := filepath.Join(to, shardName(number))
	err := WriteShard(path, tensors)
	if err == nil {
		err = im.check(path)
	}
	if err == nil {
		return nil
	}
	err = errors.Join(registry.Errorf(registry.CodeOf(err), "%s: %w", file, err), os.Remove(path))
	_ = os.Remove(to) // fails where other files are in it
	return err
}

// check counts the cases of a shard, and looks whether there is a label for each.
func (im *importing) check(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := readShard(f)
	if err != nil {
		return err
	}
	if im.Count, err = checkShard(s, "as cases", im.Interface); err != nil {
		return err
	}
	for _, input := range im.Interface.Inputs {
		var found Unusual
		if err := found.add(s.File, input.Name, 0); err != nil {
			return TensorError(err)
		}
		if text := found.String(); text != "" {
			im.note("warning: input %q has %s", input.Name, text)
		}
	}
	if im.Labels == "" {
		return nil
	}
	wanted := labelled{output: validators.TensorInfo{Name: "of the model"}}
	if info, _ := s.Info(im.Labels); info.DType.Class() == tensor.ClassFloat {
		wanted.metric.Needs, wanted.output.Shape = accuracy.NeedsValues, []validators.Dim{{Symbol: "case"}, {Symbol: "values"}}
	}
	if err := areLabels(s, im.Labels, im.Count, wanted); err != nil {
		return registry.Errorf(registry.CodeOf(err), "labels %q: %w", im.Labels, err)
	}
	return nil
}
