//go:build cgo

package pipeline_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/draft"
	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

// folder writes files and a spec beside them, and reads the spec.
func folder(t *testing.T, text string, files map[string]string) *spec.Spec {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, spec.File)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := spec.Load(path, spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pickle is one that holds an empty list and calls nothing.
const pickle = "\x80\x04]\x94."

// custom is a model with an operator of a domain that ONNX Runtime does not have.
func custom() []byte {
	node := str(str(str(str(nil, 1, "x"), 2, "y"), 4, "Twice"), 7, "my.ops")
	graph := sub(sub(str(sub(nil, 1, node), 2, "custom"), 11, floats("x")), 12, floats("y"))
	model := sub(num(nil, 1, 8), 7, graph)
	return sub(sub(model, 8, num(nil, 2, 17)), 8, num(str(nil, 1, "my.ops"), 2, 1))
}

// opset is the model of scaling in a version of the operators of ONNX.
func opset(version uint64) []byte {
	model := scaling(1.5, 1, "made by hand")
	plain := sub(nil, 8, num(nil, 2, 17))
	return append(model[:len(model)-len(plain)], sub(nil, 8, num(nil, 2, version))...)
}

// module is an archive with the names of one that torch.jit.save writes.
func module(t *testing.T) string {
	t.Helper()
	return archive(t, map[string]string{"m/data.pkl": "x", "m/constants.pkl": "x", "m/code/m.py": "x"})
}

// Files that run code when they are loaded, or are not what the spec says, are refused before any work.
func TestCheckFiles(t *testing.T) {
	t.Parallel()
	text := func(source string) string {
		return "model: vision/digits\nversion: 1.0.0\nsource: " + source + "\ncases: {generate: 4, seed: 1}\nvariants: [fp32]\ntargets: [linux/amd64/v1]\n"
	}
	onnx := string(scaling(1.5, 1, "made by hand"))
	for name, c := range map[string]struct {
		text  string
		files map[string]string
		code  registry.Code // empty for none
		want  string
	}{
		"an ONNX model":            {text("model.onnx"), map[string]string{"model.onnx": onnx}, "", ""},
		"a pickle called ONNX":     {text("model.onnx"), map[string]string{"model.onnx": pickle}, registry.CodeUnsafe, "model.onnx"},
		"an operator of its own":   {text("model.onnx"), map[string]string{"model.onnx": string(custom())}, registry.CodeInvalid, "operators of my.ops need a library"},
		"an opset to come":         {text("model.onnx"), map[string]string{"model.onnx": string(opset(120))}, registry.CodeInvalid, "model.onnx"},
		"text called ONNX":         {text("model.onnx"), map[string]string{"model.onnx": "hello, this is text"}, registry.CodeInvalid, "model.onnx"},
		"a pickle without trust":   {text("{path: m.pkl, format: pickle}"), map[string]string{"m.pkl": pickle}, registry.CodeUnsafe, "the spec does not trust this one"},
		"a pickle that is trusted": {text("{path: m.pkl, format: pickle, trust: {pickle: true}}"), map[string]string{"m.pkl": pickle}, "", ""},
		"ONNX called a pickle":     {text("{path: m.pkl, format: pickle, trust: {pickle: true}}"), map[string]string{"m.pkl": onnx}, registry.CodeInvalid, "m.pkl"},
		"a pickle called skops":    {text("{path: m.skops, format: skops}"), map[string]string{"m.skops": pickle}, registry.CodeUnsafe, "m.skops"},
		"a pickle called TFLite":   {text("{path: m.tflite, format: tflite}"), map[string]string{"m.tflite": pickle}, registry.CodeUnsafe, "m.tflite"},
		"a program of torch.export without trust": {text("{path: m.pt2, format: torch-export}"), map[string]string{"m.pt2": archive(t, map[string]string{"m/archive_format": "pt2", "m/models/model.json": "{}"})},
			registry.CodeUnsafe, "the spec does not trust this one"},
		"a program of torch.export": {text("{path: m.pt2, format: torch-export, trust: {pickle: true}}"), map[string]string{"m.pt2": archive(t, map[string]string{"m/archive_format": "pt2", "m/models/model.json": "{}"})}, "", ""},
		"a module of torch.jit called a program": {text("{path: m.pt2, format: torch-export, trust: {pickle: true}}"), map[string]string{"m.pt2": module(t)},
			registry.CodeInvalid, "expected a program that torch.export saved"},
		"a module of torch.jit": {text("{path: m.pt, format: torchscript, trust: {pickle: true}, inputs: [{name: x, shape: [batch, 1]}]}"), map[string]string{"m.pt": module(t)}, "", ""},
		"a program called a module": {text("{path: m.pt, format: torchscript, trust: {pickle: true}, inputs: [{name: x, shape: [batch, 1]}]}"), map[string]string{"m.pt": archive(t, map[string]string{"m/archive_format": "pt2", "m/models/model.json": "{}"})},
			registry.CodeInvalid, "expected a module that torch.jit.save wrote"},
		"text called a program":     {text("{path: m.pt2, format: torch-export, trust: {pickle: true}}"), map[string]string{"m.pt2": "hello, this is text"}, registry.CodeInvalid, "m.pt2"},
		"text called XGBoost":       {text("{path: m.ubj, format: xgboost}"), map[string]string{"m.ubj": "hello, this is text"}, registry.CodeInvalid, "m.ubj"},
		"text called LightGBM":      {text("{path: m.txt, format: lightgbm}"), map[string]string{"m.txt": "hello, this is text"}, registry.CodeInvalid, "m.txt"},
		"text called PMML":          {text("{path: m.pmml, format: pmml}"), map[string]string{"m.pmml": "hello, this is text"}, registry.CodeInvalid, "m.pmml"},
		"text called JAX":           {text("{path: m.bin, format: jax}"), map[string]string{"m.bin": "hello, this is text"}, registry.CodeInvalid, "m.bin"},
		"text called Keras":         {text("{path: m.keras, format: keras}"), map[string]string{"m.keras": "hello, this is text"}, registry.CodeInvalid, "m.keras"},
		"an asset":                  {text("model.onnx") + "assets: [labels.txt]\n", map[string]string{"model.onnx": onnx, "labels.txt": "cat\ndog\n"}, "", ""},
		"an asset that is a pickle": {text("model.onnx") + "assets: [labels.txt]\n", map[string]string{"model.onnx": onnx, "labels.txt": pickle}, registry.CodeUnsafe, "labels.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := ingest.CheckFiles(folder(t, c.text, c.files))
			switch {
			case c.code == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case c.code != "" && (registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %s with %q", err, c.code, c.want)
			}
		})
	}
}

// draftOf drafts a spec at path for an ONNX model.
func draftOf(model, path string) (draft.Drafted, error) {
	opened, err := draft.Open(model)
	if err != nil {
		return draft.Drafted{}, err
	}
	return opened.Draft(path, "linux/amd64/v1", nil, "")
}

// A draft names the model as a spec at its place can, and is a spec that loads.
func TestDraft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model := filepath.Join(dir, "models", "scaling.onnx")
	if err := os.MkdirAll(filepath.Dir(model), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(model, scaling(1.5, 1, "made by hand"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, spec.File)
	drafted, err := draftOf(model, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, drafted.Text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := spec.Load(path, spec.Options{})
	if err != nil {
		t.Fatalf("the draft is no spec: %v\n%s", err, drafted.Text)
	}
	if s.Source.Path.Written != "models/scaling.onnx" || s.Cases.Generate == 0 || len(s.Targets) != 1 {
		t.Errorf("source %q, %d generated cases, %d targets; want models/scaling.onnx, some, 1", s.Source.Path.Written, s.Cases.Generate, len(s.Targets))
	}
	outside := filepath.Join(t.TempDir(), spec.File)
	if _, err := draftOf(model, outside); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("a spec elsewhere: error %v, want CodeInvalid", err)
	}
	if _, err := draftOf(model, filepath.Join(dir, "none", spec.File)); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("a spec in a folder that does not exist: error %v, want CodeInvalid", err)
	}
	library := filepath.Join(dir, "custom.onnx")
	if err := os.WriteFile(library, custom(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := draftOf(library, path); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("an operator of its own: error %v, want CodeInvalid", err)
	}
	strings := filepath.Join(dir, "strings.onnx")
	if err := os.WriteFile(strings, bytes.Replace(scaling(1.5, 1, ""), floats("x"), texts("x"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if drafted, err := draftOf(strings, path); err != nil || len(drafted.Warnings) != 1 {
		t.Errorf("an input of text: warnings %q (%v), want one about cases", drafted.Warnings, err)
	}
	if _, err := draftOf(filepath.Join(dir, "none.onnx"), path); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("no model: error %v, want CodeInvalid", err)
	}
}
