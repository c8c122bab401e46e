package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Where the models of tests are, and the scripts of tests that have some.
const (
	models  = "cmd/mlpromote/testdata/models/"
	scripts = "cmd/mlpromote/testdata/script/"
)

// source is a model in a format that is imported.
type source struct {
	name, toolchain string
	files           map[string]string // where they come from, by where they go; NAME#PART is a part of the script of a test
	program         string            // in Python, which writes the model, and its arguments
	spec            string            // a spec, without variants and targets
	draft           []string          // or else what `mlpromote init` gets
	compiled        [][2]string       // by toolchains that take the source itself: toolchain and variant
}

func sources() []source {
	digits := map[string]string{"cases/cases.safetensors": models + "tensorflow/cases/cases.safetensors"}
	with := func(to, from string) map[string]string {
		return map[string]string{to: models + from, "cases/cases.safetensors": digits["cases/cases.safetensors"]}
	}
	images := func(line string) string {
		return "model: vision/digits\nversion: 1.0.0\nsource: " + line + "\ncases: {path: cases/, labels: label}\n"
	}
	hub := func(name, more string) source {
		return source{name: "transformers, " + name, toolchain: "torch", files: map[string]string{name: models + "huggingface/" + name},
			spec:     "model: hub/" + name + "\nversion: 1.0.0\nsource: {path: " + name + ", format: huggingface}\nshapes: {batch: [1, 1, 4]" + more + "}\ncases: {generate: 64, seed: 3}\n",
			compiled: [][2]string{{"torch-inductor", "fp32"}, {"torch-inductor", "{name: int8d, quantize: {method: dynamic, tool: torchao}}"}}}
	}
	words := func(file, variant string) source {
		return source{name: "GGUF, " + variant, toolchain: "torch", files: map[string]string{file: models + "gguf/" + file},
			spec:     "model: hub/words\nversion: 1.0.0\nsource: {path: " + file + ", format: gguf}\nshapes: {batch: [1, 1, 4], sequence: [2, 12, 32]}\ncases: {generate: 64, seed: 3}\n",
			compiled: [][2]string{{"llama-cpp", "{name: " + variant + ", quantize: {method: none}}"}}}
	}
	drawn := func(shape, name string) source {
		return source{name: "torch.export, " + name, toolchain: "torch", files: map[string]string{"programs.py": "tools/toolchainstable/programs.py"}, program: "programs.py " + shape + " " + shape + ".pt2",
			spec:     "model: zoo/" + shape + "\nversion: 1.0.0\nsource: {path: " + shape + ".pt2, format: torch-export, trust: {pickle: true}}\nshapes: {batch: [1, 1, 4]}\ncases: {generate: 64, seed: 3}\n",
			compiled: [][2]string{{"torch-inductor", "fp32"}}}
	}
	return []source{
		{name: "ONNX", toolchain: "onnxruntime", files: map[string]string{".": "examples/digits"}},
		{name: "scikit-learn", toolchain: "scikit-learn", files: map[string]string{".": "examples/wine"}},
		{name: "safetensors", toolchain: "safetensors", files: map[string]string{".": "examples/iris"}},
		{name: "safetensors, encoder", toolchain: "safetensors", files: map[string]string{"encoder.safetensors": models + "encoder/encoder.safetensors", "cases": models + "encoder/cases"},
			spec: "model: small/encoder\nversion: 1.0.0\nsource:\n  path: encoder.safetensors\n  format: safetensors\n" +
				"  architecture: {kind: encoder, heads: 4, norm: before, input: [6], layers: [tokens, positions, block0, block1, mean, head]}\ncases: cases/\n"},
		{name: "XGBoost", toolchain: "xgboost", files: map[string]string{".": "examples/tumors"}},
		{name: "LightGBM, classes", toolchain: "lightgbm", files: map[string]string{"fit.py": scripts + "import_lightgbm.txtar#fit.py"}, program: "fit.py",
			draft: []string{"classes.txt", "--cases", "rows.csv", "--label", "class"}},
		{name: "PMML, a tree", toolchain: "pmml", files: map[string]string{"price.pmml": scripts + "import_pmml.txtar#price.pmml"}, draft: []string{"price.pmml"}},
		{name: "PMML, votes", toolchain: "pmml", files: map[string]string{"votes.pmml": scripts + "import_pmml.txtar#votes.pmml"}, draft: []string{"votes.pmml"}},
		{name: "TensorFlow Lite", toolchain: "tensorflow", files: with("digits.tflite", "tensorflow/digits.tflite"), spec: images("{path: digits.tflite, format: tflite}")},
		{name: "SavedModel", toolchain: "tensorflow", files: with("digits", "tensorflow/digits"), spec: images("{path: digits/, format: savedmodel}")},
		{name: "Keras", toolchain: "tensorflow", files: with("digits.keras", "keras/digits.keras"), spec: images("{path: digits.keras, format: keras}")},
		{name: "JAX", toolchain: "xla", files: with("digits.jax", "jax/digits.jax"), spec: images("{path: digits.jax, format: jax}")},
		{name: "torch.export", toolchain: "torch", files: map[string]string{"digits.pt2": models + "torch/digits.pt2", "cases": "examples/digits/cases"},
			spec: images("{path: digits.pt2, format: torch-export, trust: {pickle: true}}"), compiled: [][2]string{{"torch-inductor", "fp32"}}},
		drawn("detector", "OCR, detector"), drawn("recognizer", "OCR, recognizer"), drawn("vad", "VAD"),
		{name: "TorchScript", toolchain: "torch", files: map[string]string{"script.pt": models + "torch/script.pt", "cases": "examples/digits/cases"},
			spec: images("{path: script.pt, format: torchscript, trust: {pickle: true}, inputs: [{name: image, shape: [batch, 1, 8, 8]}]}")},
		hub("encoder", ", sequence: [2, 12, 32]"), hub("vision", ""), hub("decoder", ", sequence: [2, 12, 32]"), hub("mixture", ", sequence: [2, 12, 32]"),
		words("q8_0.gguf", "int8"), words("f16.gguf", "fp16"),
	}
}

// sources has a row for each source: its engine of ONNX Runtime, compared with what its own framework predicts.
func (p program) sources() table {
	t := table{name: "sources", header: "| source | imported by | engine | parity | max. difference | SNR | accuracy | p50 | built twice |\n|---|---|--:|---|--:|--:|--:|--:|---|"}
	for _, s := range sources() {
		t.rows = append(t.rows, row{tool: s.toolchain, title: fmt.Sprintf("| %s | %s |", s.name, p.title(s.toolchain)), absent: !p.installed(s.toolchain),
			measure: func() (string, error) {
				return p.inFolder(func(dir string) (string, error) { return s.row(p, dir, "onnxruntime", "fp32") })
			}})
	}
	return t
}

// compiledSources have a row for each source and toolchain that takes it as it is.
func (p program) compiledSources() []row {
	var rows []row
	for _, s := range sources() {
		for _, by := range s.compiled {
			rows = append(rows, row{tool: by[0], title: fmt.Sprintf("| %s | %s | %s |", s.name, p.title(by[0]), short(by[1])), absent: !p.installed(s.toolchain) || !p.installed(by[0]),
				measure: func() (string, error) {
					return p.inFolder(func(dir string) (string, error) { return s.row(p, dir, by[0], by[1]) })
				}})
		}
	}
	return rows
}

// row builds and verifies an engine of the source, and returns its cells.
func (s source) row(p program, dir, toolchain, variant string) (string, error) {
	for to, from := range s.files {
		if err := place(from, filepath.Join(dir, to)); err != nil {
			return "", err
		}
	}
	if s.program != "" {
		python, err := p.python(s.toolchain)
		if err == nil {
			var out []byte
			if out, err = execute(dir, nil, python, strings.Fields(s.program)...); err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
		}
		if err != nil {
			return "", err
		}
	}
	spec := filepath.Join(dir, "mlpromote.yaml")
	switch {
	case s.draft != nil:
		out, ok, err := try(dir, nil, p.path, append([]string{"init"}, s.draft...)...)
		if err != nil {
			return "", err
		}
		if !ok {
			return fmt.Sprintf("- | %s | | | | | |", reason(out, dir)), nil
		}
	case s.spec != "":
		if err := os.WriteFile(spec, []byte(s.spec), 0o644); err != nil {
			return "", err
		}
	}
	if err := edit(spec, variant, processor, toolchain, ""); err != nil {
		return "", err
	}
	return p.release(dir)
}

// place copies a file, a folder, or a part of the script of a test.
func place(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	path, part, isPart := strings.Cut(from, "#")
	if info, err := os.Stat(path); err != nil {
		return err
	} else if info.IsDir() {
		return os.CopyFS(to, os.DirFS(path))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if isPart {
		_, rest, ok := strings.Cut(string(text), "\n-- "+part+" --\n")
		if !ok {
			return fmt.Errorf("%s has no part %s", path, part)
		}
		content, _, _ := strings.Cut(rest, "\n-- ")
		text = []byte(content + "\n")
	}
	return os.WriteFile(to, text, 0o644)
}

// python is the interpreter of an install.
func (p program) python(name string) (string, error) {
	for _, t := range p.tools {
		if t.Name == name && len(t.Installs) > 0 {
			return t.Installs[0].Interpreter, nil
		}
	}
	return "", errors.New("no install of " + name)
}
