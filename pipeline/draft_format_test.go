//go:build cgo

package pipeline_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/draft"
	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// tfliteModel begins as a TensorFlow Lite model does; importers of tests read no more of it.
const tfliteModel = "\x1c\x00\x00\x00TFL3 and the graph"

// weightsAlone is a safetensors file.
func weightsAlone(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := tensor.Tensor{DType: tensor.Float32, Shape: []int64{1}, Data: make([]byte, 4)}
	if err := tensorfile.Write(&b, map[string]tensor.Tensor{"w": w}, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// savedModel is the graph of a SavedModel with one node.
func savedModel() string {
	node := str(nil, 2, "Add")
	return string(sub(num(nil, 1, 1), 2, sub(nil, 2, sub(nil, 1, node))))
}

// kerasArchive is a .keras archive without layers.
func kerasArchive(t *testing.T) string {
	t.Helper()
	return archive(t, map[string]string{"metadata.json": "{}", "config.json": "{}", "model.weights.h5": "\x89HDF\r\n\x1a\n\x00"})
}

// archive is a zip archive of files.
func archive(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range files {
		entry, err := w.Create(name)
		if err == nil {
			_, err = entry.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// recorded is a file that a framework wrote.
func recorded(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../cmd/mlpromote/testdata/models", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// The format of a model is what its bytes are, whatever its file is called. A refusal says what to do.
func TestDraftFormat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		open  string
		want  string // the format; empty: refused
		code  registry.Code
		text  string // of the error or its hint
	}{
		"ONNX":                     {map[string]string{"m.bin": string(scaling(1.5, 1, ""))}, "m.bin", spec.FormatONNX, "", ""},
		"what nothing recognizes":  {map[string]string{"m.txt": "hello"}, "m.txt", spec.FormatONNX, "", ""},
		"TensorFlow Lite":          {map[string]string{"m.onnx": tfliteModel}, "m.onnx", spec.FormatTFLite, "", ""},
		"a SavedModel":             {map[string]string{"m/saved_model.pb": savedModel()}, "m", spec.FormatSavedModel, "", ""},
		"Keras":                    {map[string]string{"m.zip": kerasArchive(t)}, "m.zip", spec.FormatKeras, "", ""},
		"JAX":                      {map[string]string{"m.bin": recorded(t, "jax/digits.jax")}, "m.bin", spec.FormatJAX, "", ""},
		"a program of PyTorch":     {map[string]string{"m.onnx": recorded(t, "torch/digits.pt2")}, "m.onnx", spec.FormatTorchExport, registry.CodeUnsafe, "m.onnx --trust pickle"},
		"weights of PyTorch":       {map[string]string{"m.onnx": recorded(t, "torch/weights.pt")}, "m.onnx", "", registry.CodeUnsafe, "torch.export.save("},
		"TorchScript":              {map[string]string{"m.onnx": recorded(t, "torch/script.pt")}, "m.onnx", "", registry.CodeUnsafe, "format: torchscript"},
		"a folder of transformers": {map[string]string{"m/config.json": `{"architectures": ["BertModel"], "model_type": "bert"}`}, "m", spec.FormatHuggingFace, "", ""},
		"a folder of others":       {map[string]string{"m/model.onnx": ""}, "m", "", registry.CodeInvalid, "a folder without saved_model.pb"},
		"the graph of a SavedModel": {map[string]string{"m/saved_model.pb": savedModel()}, "m/saved_model.pb", "", registry.CodeInvalid,
			"name its folder: mlpromote init "},
		"weights alone": {map[string]string{"m.onnx": weightsAlone(t)}, "m.onnx", "", registry.CodeInvalid, "architecture: {...}}"},
		"a pickle":      {map[string]string{"m.onnx": pickle}, "m.onnx", "", registry.CodeUnsafe, "trust: {pickle: true}"},
		"XGBoost":       {map[string]string{"m.onnx": `{"learner":{},"version":[3,4,1]}`}, "m.onnx", spec.FormatXGBoost, "", ""},
		"LightGBM":      {map[string]string{"m.onnx": "tree\nversion=v4\n"}, "m.onnx", spec.FormatLightGBM, "", ""},
		"PMML":          {map[string]string{"m.xml": `<PMML version="4.4"/>`}, "m.xml", spec.FormatPMML, "", ""},
		"a pickle of XGBoost": {map[string]string{"m.bin": "cxgboost.sklearn\nXGBClassifier\n)R."}, "m.bin", "", registry.CodeUnsafe,
			`model.save_model("model.json")`},
		"a pickle of LightGBM": {map[string]string{"m.bin": "clightgbm.sklearn\nLGBMClassifier\n)R."}, "m.bin", "", registry.CodeUnsafe,
			`model.booster_.save_model("model.txt")`},
		"GGUF":           {map[string]string{"m.onnx": "GGUF\x03\x00\x00\x00" + strings.Repeat("\x00", 16)}, "m.onnx", spec.FormatGGUF, "", ""},
		"GGUF cut short": {map[string]string{"m.onnx": "GGUF\x03\x00\x00\x00"}, "m.onnx", "", registry.CodeUnsafe, "it ends in its header"},
		"nothing":        {nil, "m.onnx", "", registry.CodeInvalid, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, content := range c.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := draft.FormatOf(filepath.Join(dir, c.open))
			if got != c.want || (err == nil) != (c.code == "") {
				t.Fatalf("format %q, error %v; want %q and %q", got, err, c.want, c.code)
			}
			if err != nil && (registry.CodeOf(err) != c.code || !strings.Contains(err.Error()+strings.Join(registry.Hints(err), ""), c.text)) {
				t.Errorf("error %v (%s), hints %q; want %s with %q", err, registry.CodeOf(err), registry.Hints(err), c.code, c.text)
			}
		})
	}
}

// sequence and optional describe values that hold tensors and are none: fields 4 and 9 of TypeProto.
func sequence(name string) []byte {
	return sub(str(nil, 1, name), 2, sub(nil, 4, sub(nil, 1, sub(nil, 1, num(nil, 1, onnxFloat)))))
}

func optional(name string) []byte {
	return sub(str(nil, 1, name), 2, sub(nil, 9, sub(nil, 1, sub(nil, 1, num(nil, 1, onnxFloat)))))
}

// Outputs that no build can compare are refused before a spec is drafted, with the way to a model
// without them, which depends on what makes them.
func TestDraftOfOutputsThatAreNoTensors(t *testing.T) {
	t.Parallel()
	output := func(with []byte) []byte {
		return scalingOf(1.5, 1, "", func(name string) []byte {
			if name == "y" {
				return with
			}
			return floats(name)
		})
	}
	zipMap := func() []byte {
		node := str(str(str(str(str(nil, 1, "x"), 2, "y"), 3, "zip"), 4, "ZipMap"), 7, "ai.onnx.ml")
		graph := sub(sub(str(sub(nil, 1, node), 2, "labelled"), 11, floats("x")), 12, sequence("y"))
		model := sub(num(nil, 1, 8), 7, graph)
		return sub(sub(model, 8, num(nil, 2, 17)), 8, num(str(nil, 1, "ai.onnx.ml"), 2, 3))
	}
	for name, c := range map[string]struct {
		model []byte
		hint  string
	}{
		"text":                     {output(texts("y")), `a node Add makes it: leave the output out: m = onnx.load("MODEL.onnx")`},
		"a sequence":               {output(sequence("y")), "a node Add makes it: join its elements before the output"},
		"an optional value":        {output(optional("y")), "a node Add makes it: leave it out: "},
		"what no node makes":       {output(sequence("z")), "export the model with a tensor in its place"},
		"dictionaries of a ZipMap": {zipMap(), `the node "zip" (ZipMap) makes it: export the model with a tensor of probabilities`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "model.onnx")
			if err := os.WriteFile(path, c.model, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := draft.Open(path)
			if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(strings.Join(registry.Hints(err), "\n"), c.hint) {
				t.Errorf("error %v, hints %q; want CodeInvalid with %q", err, registry.Hints(err), c.hint)
			}
		})
	}
}

// converter is an importer that leaves a model, and says what it found in the source.
type converter struct {
	model  []byte
	result string                 // JSON
	next   func() ([]byte, error) // in place of model; may be nil
}

func (converter) Identity(context.Context) (toolchain.Identity, error) {
	return toolchain.Identity{Name: "importer", Version: "2.1"}, nil
}

func (c converter) Do(_ context.Context, _ toolchain.Job, outDir string) (toolchain.Outcome, error) {
	if err := os.MkdirAll(outDir, 0o700); err != nil {
		return toolchain.Outcome{}, err
	}
	if c.next != nil {
		var err error
		if c.model, err = c.next(); err != nil {
			return toolchain.Outcome{}, err
		}
	}
	if err := os.WriteFile(filepath.Join(outDir, "model.onnx"), c.model, 0o600); err != nil {
		return toolchain.Outcome{}, err
	}
	files, err := toolchain.Collect(outDir)
	return toolchain.Outcome{Files: files, Result: json.RawMessage(c.result)}, err
}

// A model of another format is imported before a spec is drafted for it, and a failure on the way is told.
func TestDraftOfAnImportedModel(t *testing.T) {
	t.Parallel()
	good := scaling(1.5, 1, "imported")
	away := registry.Errorf(registry.CodeUnavailable, "no network")
	for name, c := range map[string]struct {
		file string // below the folder of the model; empty: model.tflite
		edit func(env *run.Env)
		made []byte
		code registry.Code // empty for none
		text string
	}{
		"a model":                     {made: good},
		"no file":                     {file: "none.tflite", made: good, code: registry.CodeInvalid, text: "none.tflite"},
		"no folder":                   {file: "none/model.tflite", made: good, code: registry.CodeInvalid, text: "none"},
		"another format":              {file: "text.tflite", made: good, code: registry.CodeInvalid, text: "text.tflite"},
		"text for a model":            {made: []byte("text"), code: registry.CodeInvalid, text: "model.onnx"},
		"an output that is no tensor": {made: scalingOf(1.5, 1, "", sequence), code: registry.CodeInvalid, text: "model.tflite"},
		"no toolchain for it": {edit: func(env *run.Env) { env.ImporterOf = func(string) (string, error) { return "", away } },
			made: good, code: registry.CodeUnavailable, text: "no network"},
		"a toolchain that is away": {edit: func(env *run.Env) {
			env.Toolchain = func(context.Context, string) (run.Toolchain, error) { return run.Toolchain{}, away }
		}, made: good, code: registry.CodeUnavailable, text: "no network"},
		"a machine that cannot be described": {edit: func(env *run.Env) {
			env.Node = func(context.Context, map[string]string) (artifact.Node, error) { return artifact.Node{}, away }
		}, made: good, code: registry.CodeUnavailable, text: "no network"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.put(t, map[string]string{"model.tflite": tfliteModel, "text.tflite": "hello"})
			w.p.ImporterOf = func(string) (string, error) { return "importer", nil }
			w.p.Toolchain = func(context.Context, string) (run.Toolchain, error) {
				return run.Toolchain{Importer: converter{model: c.made}, Framework: "lite"}, nil
			}
			if c.edit != nil {
				c.edit(w.p)
			}
			file := c.file
			if file == "" {
				file = "model.tflite"
			}
			opened, err := draft.Import(t.Context(), w.p, filepath.Join(w.dir, file), spec.FormatTFLite, nil)
			if (err == nil) != (c.code == "") || err != nil && (registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text)) {
				t.Fatalf("error %v (%s), want %q with %q", err, registry.CodeOf(err), c.code, c.text)
			}
			if err != nil {
				return
			}
			path := filepath.Join(w.dir, spec.File)
			drafted, err := opened.Draft(path, "linux/amd64/v1", nil, "")
			if err != nil {
				t.Fatal(err)
			}
			if s := w.spec(t, string(drafted.Text)); s.Source.Format != spec.FormatTFLite || s.Source.Path.Written != "model.tflite" {
				t.Errorf("source %q of format %q, want model.tflite of tflite", s.Source.Path.Written, s.Source.Format)
			}
		})
	}
}

// Names of classes that an importer finds in the source are those of the release. What the spec says
// goes before them, and names that do not fit are left out with a note.
func TestNamesThatAnImporterFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found string // JSON
		said  string // in the spec
		want  string // of the feature of x and of the class of y
		note  string
	}{
		"both":               {`{"names": {"inputs": {"x": ["width"]}, "outputs": {"y": ["cat"]}}}`, "", "width cat", ""},
		"nothing":            {`{}`, "", " ", ""},
		"features of a spec": {`{"names": {"inputs": {"x": ["width"]}}}`, "inputs: {x: {features: [height]}}\n", "height ", ""},
		"classes of a spec":  {`{"names": {"outputs": {"y": ["cat"]}}}`, "outputs: {y: {labels: [dog]}}\n", " dog", ""},
		"too many features":  {`{"names": {"inputs": {"x": ["width", "height"]}}}`, "", " ", "the names of features in the model are left out"},
		"too many classes":   {`{"names": {"outputs": {"y": ["cat", "dog"]}}}`, "", " ", "the names of classes in the model are left out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.put(t, map[string]string{"model.tflite": tfliteModel})
			w.p.ImporterOf = func(string) (string, error) { return "importer", nil }
			open := w.p.Toolchain
			w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
				tools, err := open(ctx, name)
				tools.Importer, tools.Framework = converter{model: scaling(1.5, 1, "imported"), result: c.found}, "lite"
				return tools, err
			}
			text := strings.Replace(onlyFP32, "model.onnx", "{path: model.tflite, format: tflite}", 1) + c.said
			planned, err := build.Plan(t.Context(), w.p, w.spec(t, text))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(planned.Interface.Inputs[0].Names, ",") + " " + strings.Join(planned.Interface.Outputs[0].Names, ",")
			if got != c.want {
				t.Errorf("names %q, want %q", got, c.want)
			}
			if said := strings.Join(w.warnings, "\n"); c.note != "" && !strings.Contains(said, c.note) {
				t.Errorf("warnings %q, want %q", said, c.note)
			}
		})
	}
}

// pairs describes a value of shape [1, 2].
func pairs(name string) []byte {
	shape := sub(sub(nil, 1, num(nil, 1, 1)), 1, num(nil, 1, 2))
	return sub(str(nil, 1, name), 2, sub(nil, 1, sub(num(nil, 1, 1), 2, shape)))
}

// classifying is scaling whose graph names the classes of a classifier.
func classifying(classes ...string) []byte {
	attribute := str(nil, 1, "classlabels_strings")
	for _, c := range classes {
		attribute = str(attribute, 9, c)
	}
	var graph []byte
	fields(scalingOf(1.5, 1, "", pairs), 7, func(g []byte) { graph = g })
	named := sub(str(str(str(nil, 1, "x"), 2, "c"), 4, "Identity"), 5, num(attribute, 20, 8))
	return sub(sub(num(nil, 1, 8), 7, sub(graph, 1, named)), 8, num(nil, 2, 17))
}

// The classes that an ONNX graph names are those of outputs with a score per class, and of no others.
func TestClassesOfAGraph(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{"scores": "cat,dog", "probability": "cat,dog", "value": "", "embedding": "", "tokens": ""} {
		w := setup(t, 1.5)
		w.put(t, map[string]string{"model.onnx": string(classifying("cat", "dog"))})
		planned, err := build.Plan(t.Context(), w.p, w.spec(t, strings.Replace(onlyFP32, "cases/", "{generate: 4, seed: 1}", 1)+"outputs: {y: {kind: "+kind+"}}\n"))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if got := strings.Join(planned.Interface.Outputs[0].Names, ","); got != want {
			t.Errorf("%s: classes %q, want %q", kind, got, want)
		}
	}
}

// The inputs that a spec's model has are those of its file, with the sizes that the spec says.
func TestInputsOfSpec(t *testing.T) {
	t.Parallel()
	text := func(source, more string) string {
		return "model: m\nversion: 1.0.0\nsource: " + source + "\ncases: {generate: 4, seed: 1}\nvariants: [fp32]\ntargets: [linux/amd64/v1]\n" + more
	}
	files := map[string]string{"model.onnx": string(tokens(onnxInt64, 0, 40)), "text.onnx": "hello", "model.tflite": tfliteModel,
		"sequence.onnx": string(scalingOf(1.5, 1, "", sequence))}
	for name, c := range map[string]struct {
		text  string
		most  int64  // of the dimension b
		error string // empty for none
	}{
		"open":             {text("model.onnx", ""), 64, ""},
		"with its sizes":   {text("model.onnx", "shapes: {b: [1, 2, 8]}\n"), 8, ""},
		"no model":         {text("text.onnx", ""), 0, "text.onnx"},
		"inputs of no use": {text("sequence.onnx", ""), 0, "sequence.onnx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ingest.InputsOfSpec(t.Context(), new(run.Env), folder(t, c.text, files))
			if (err == nil) != (c.error == "") || err != nil && (registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.error)) {
				t.Fatalf("error %v (%s), want %q", err, registry.CodeOf(err), c.error)
			}
			if err == nil && (len(got.Inputs) != 1 || got.Inputs[0].Name != "x" || len(got.Outputs) != 0 || got.Dims["b"].Max != c.most) {
				t.Errorf("interface %+v, want the input x alone, of at most %d in b", got, c.most)
			}
		})
	}
}

// A draft of an export by skl2onnx names the file that has more to compare with, unless the cases have what scikit-learn computed.
func TestDraftNamesSkops(t *testing.T) {
	t.Parallel()
	model := new(graph).input(onnxFloat, 1, 10).node("Softmax", []string{"x"}, "y", nil).onnx(1, 10)
	for producer, wants := range map[string]bool{"skl2onnx": true, "pytorch": false, "": false} {
		for _, expected := range [][]string{nil, {"y"}} {
			dir := t.TempDir()
			file := filepath.Join(dir, "model.onnx")
			named := append(slices.Clone(model), append([]byte{2<<3 | 2, byte(len(producer))}, producer...)...) // producer_name
			if err := os.WriteFile(file, named, 0o600); err != nil {
				t.Fatal(err)
			}
			opened, err := draft.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "cases"), 0o700); err != nil {
				t.Fatal(err)
			}
			drafted, err := opened.Draft(filepath.Join(dir, spec.File), "linux/amd64/v1", &cases.Imported{Count: 20, Expected: expected}, filepath.Join(dir, "cases"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(strings.Join(drafted.Warnings, "\n"), "skops.io.dump"); got != (wants && expected == nil) {
				t.Errorf("by %q, expected %v: warnings %q", producer, expected, drafted.Warnings)
			}
		}
	}
}

// A draft with recorded cases limits accuracy by what so many cases can show, and not where they are too few.
func TestDraftLimitsAccuracy(t *testing.T) {
	t.Parallel()
	softmax := new(graph).input(onnxFloat, 1, 10).node("Softmax", []string{"x"}, "y", nil).onnx(1, 10)
	row := new(graph).input(onnxFloat, 1, 10).node("Relu", []string{"x"}, "y", nil).onnx(1, 10)
	one := new(graph).input(onnxFloat, 1, 1).node("Sigmoid", []string{"x"}, "y", nil).onnx(1, 1)
	row2 := new(graph).input(onnxFloat, 1, 10).node("Sigmoid", []string{"x"}, "y", nil).onnx(1, 10)
	numbers := new(graph).input(onnxFloat, 1, 3, 8, 8).node("ArgMax", []string{"x"}, "y", nil).output(onnxInt64, 1, 1, 8, 8)
	planes := new(graph).input(onnxFloat, 1, 3, 8, 8).node("Relu", []string{"x"}, "y", nil).onnx(1, 3, 8, 8)
	for name, c := range map[string]struct {
		model []byte
		count int
		facts cases.LabelFacts
		want  string // in the text; empty: no limit on accuracy
	}{
		"scores of many cases":      {softmax, 10000, cases.LabelFacts{Each: 1}, "metric: top1, drop: {max: 1%}"},
		"scores of few cases":       {softmax, 20, cases.LabelFacts{Each: 1}, "# The labels decide nothing: 20 cases prove too little for a limit on top1; mlpromote plan shows how many it takes"},
		"scores of one case":        {softmax, 1, cases.LabelFacts{Each: 1}, ""},
		"values":                    {scaling(1.5, 1, ""), 20, cases.LabelFacts{}, "metric: rmse, drop: {max: 5%}"},
		"several real numbers":      {row, 300, cases.LabelFacts{Real: true, Each: 10}, `{"y": {kind: value}}   # guessed: it has 10 numbers for each case, as the labels, which are not whole`},
		"and their metric":          {row, 300, cases.LabelFacts{Real: true, Each: 10}, "metric: rmse, drop: {max: 5%}"},
		"several whole numbers":     {row, 300, cases.LabelFacts{Each: 10}, `{"y": {kind: value}}   # guessed: it has 10 numbers for each case, as the labels.`},
		"a 1 for each class":        {row, 300, cases.LabelFacts{Each: 10, Binary: true}, `{"y": {kind: scores}}`},
		"real numbers of no output": {row, 300, cases.LabelFacts{Real: true, Each: 1}, ""},
		"one number of two classes": {one, 300, cases.LabelFacts{Each: 1, Binary: true}, "metric: auc, drop: {max: 5%}"},
		"one number":                {one, 300, cases.LabelFacts{Each: 1}, "metric: rmse, drop: {max: 5%}"},
		"several yes and no":        {row2, 300, cases.LabelFacts{Each: 10, Binary: true}, "metric: auc_macro, drop: {max: 5%}"},
		"classes of places":         {planes, 300, cases.LabelFacts{Each: 64}, "metric: miou, drop: {max: 5%}"},
		"classes of many places":    {planes, 3000, cases.LabelFacts{Each: 64}, "metric: miou, drop: {max: 1%}"},
		"class numbers of places":   {numbers, 300, cases.LabelFacts{Each: 64}, "metric: miou, drop: {max: 5%}"},
		"places of few cases":       {planes, 30, cases.LabelFacts{Each: 64}, ""},
		"numbers of places":         {planes, 300, cases.LabelFacts{Real: true, Each: 64}, ""},
		"classes of other places":   {planes, 300, cases.LabelFacts{Each: 48}, ""},
		"classes":                   {row, 300, cases.LabelFacts{Each: 1}, "metric: top1, drop: {max: 3%}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			model := filepath.Join(dir, "model.onnx")
			if err := os.WriteFile(model, c.model, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "cases"), 0o700); err != nil {
				t.Fatal(err)
			}
			opened, err := draft.Open(model)
			if err != nil {
				t.Fatal(err)
			}
			imported := &cases.Imported{Count: c.count, Labels: "label", Facts: c.facts, Values: labelsOf(t, c.count, c.facts)}
			drafted, err := opened.Draft(filepath.Join(dir, spec.File), "linux/amd64/v1", imported, filepath.Join(dir, "cases"))
			if err != nil {
				t.Fatal(err)
			}
			if text := string(drafted.Text); c.want != "" && !strings.Contains(text, c.want) || c.want == "" && strings.Contains(text, "metric: top1, drop") {
				t.Errorf("the draft is\n%s\nwant %q", text, c.want)
			}
			if _, err := opened.Draft(filepath.Join(dir, spec.File), "linux/amd64/v1", imported,
				filepath.Join(filepath.Dir(dir), "elsewhere")); registry.CodeOf(err) != registry.CodeInvalid {
				t.Errorf("cases out of the folder of the spec: error %v, want CodeInvalid", err)
			}
		})
	}
}

// labelsOf returns labels of these facts: classes 0 to 2, or 0 and 1.
func labelsOf(t *testing.T, count int, facts cases.LabelFacts) tensor.Tensor {
	t.Helper()
	each, classes := max(int(facts.Each), 1), 3
	if facts.Binary {
		classes = 2
	}
	values := make([]int64, count*each)
	for i := range values {
		values[i] = int64((7*i + i/2) % classes)
	}
	shape := []int64{int64(count)}
	if each > 1 {
		shape = append(shape, int64(each))
	}
	labels, err := tensor.New(values, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return labels
}

// framework imports models as next says, and runs them as y = 1.5 * x.
type framework struct {
	converter
	w *world
}

func (f framework) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	if job.Verb != toolchain.VerbRun {
		return f.converter.Do(ctx, job, outDir)
	}
	for i, in := range job.Inputs {
		if in.Role == toolchain.RoleModel {
			job.Inputs[i].Path = filepath.Join(f.w.dir, "model.onnx")
		}
	}
	return linear{}.Do(ctx, job, outDir)
}

// importing has the world's models imported from model.tflite, as next says.
func (w *world) importing(t *testing.T, next func() ([]byte, error)) {
	t.Helper()
	w.put(t, map[string]string{"model.tflite": tfliteModel})
	w.p.ImporterOf = func(string) (string, error) { return "importer", nil }
	open := w.p.Toolchain
	w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
		tools, err := open(ctx, name)
		tools.Importer, tools.Framework = framework{converter{result: `{}`, next: next}, w}, "lite"
		return tools, err
	}
}

const imported = "{path: model.tflite, format: tflite}"

// A model that an importer makes otherwise on another machine does not join the part of a release that is there.
func TestPartsOfAnotherImport(t *testing.T) {
	t.Parallel()
	w, made := setup(t, 1.5), "imported"
	w.importing(t, func() ([]byte, error) { return scaling(1.5, 1, made), nil })
	text := strings.Replace(twoTargets, "model.onnx", imported, 1)
	w.built(t, text, of(narrow))
	made = "imported elsewhere"
	_, err := build.Build(t.Context(), w.p, w.spec(t, text), of(wide))
	if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "that of the first part of this release is") ||
		!strings.Contains(strings.Join(registry.Hints(err), ""), "share a build cache") {
		t.Errorf("error %v with hints %q, want that the reference model is another one", err, registry.Hints(err))
	}
}

// A build that is to be reproducible does the import again, and fails if that fails.
func TestReproduceFails(t *testing.T) {
	t.Parallel()
	w, runs := setup(t, 1.5), 0
	w.importing(t, func() ([]byte, error) {
		if runs++; runs > 1 {
			return nil, errInjected
		}
		return scaling(1.5, 1, "imported"), nil
	})
	_, err := build.Build(t.Context(), w.p, w.spec(t, strings.Replace(onlyFP32, "model.onnx", imported, 1)), build.Options{CheckReproducible: true})
	again := slices.ContainsFunc(w.done(progress.Failed), func(step string) bool { return strings.HasPrefix(step, "again: ") })
	if !errors.Is(err, errInjected) || !again {
		t.Errorf("error %v, failed steps %q, want that of the second import", err, w.done(progress.Failed))
	}
}

// A folder of transformers without a tokenizer, and classes with the same name, are said by init and by plan.
func TestNotesOnAPretrainedFolder(t *testing.T) {
	t.Parallel()
	const alone, twice = "no files of a tokenizer or processor", `classes 0 and 1 in the model are both called "crane"`
	for name, c := range map[string]struct {
		file, found string
		want, not   string
	}{
		"no tokenizer": {"README.md", `{}`, alone, "both called"},
		"a tokenizer":  {"vocab.txt", `{"names": {"outputs": {"y": ["crane", "crane"]}}}`, twice, alone},
		"other names":  {"vocab.txt", `{"names": {"outputs": {"y": ["crane", "heron"]}}}`, "", "both called"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			if err := os.Mkdir(filepath.Join(w.dir, "bert"), 0o700); err != nil {
				t.Fatal(err)
			}
			w.put(t, map[string]string{"bert/config.json": `{"model_type": "bert", "architectures": ["BertModel"]}`, "bert/" + c.file: "x",
				"bert/model.safetensors": "\x02\x00\x00\x00\x00\x00\x00\x00{}"})
			w.p.ImporterOf = func(string) (string, error) { return "importer", nil }
			open := w.p.Toolchain
			w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
				tools, err := open(ctx, name)
				tools.Importer, tools.Framework = converter{model: scalingOf(1.5, 1, "", pairs), result: c.found}, "torch"
				return tools, err
			}
			opened, err := draft.Import(t.Context(), w.p, filepath.Join(w.dir, "bert"), spec.FormatHuggingFace, nil)
			if err != nil {
				t.Fatal(err)
			}
			drafted, err := opened.Draft(filepath.Join(w.dir, spec.File), "linux/amd64/v1", nil, "")
			if err != nil {
				t.Fatal(err)
			}
			said := strings.Join(drafted.Warnings, "\n")
			if !strings.Contains(said, c.want) || strings.Contains(said, c.not) {
				t.Errorf("init warns %q, want %q and not %q", said, c.want, c.not)
			}
			if _, err := build.Plan(t.Context(), w.p, w.spec(t, string(drafted.Text))); err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(w.warnings, "\n"); !strings.Contains(said, c.want) || strings.Contains(said, c.not) {
				t.Errorf("plan warns %q, want %q and not %q", said, c.want, c.not)
			}
		})
	}
}

// A file that is no ONNX is refused, with the formats that init and a spec of one's own take.
func TestOpenDraftOfAnotherFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := draft.Open(file)
	if hints := strings.Join(registry.Hints(err), "\n"); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(hints, "init reads ONNX, skops") ||
		!strings.Contains(hints, "format: skops|") {
		t.Errorf("error %v with hints %q, want the formats that there are", err, hints)
	}
}
