//go:build cgo

package pipeline_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/registry"
)

// quantizedModel dequantizes its weights, of eight bits.
func quantizedModel() []byte {
	g := new(graph).input(onnxFloat, 1, 4).weight("w", onnxInt8, 1, 4, 4).half("s")
	return g.node("DequantizeLinear", []string{"w", "s"}, "f", nil).node("MatMul", []string{"x", "f"}, "y", nil).onnx(1, 4)
}

// A file that is taken away or exchanged for a link after the spec was read brings nothing in from
// elsewhere.
func TestPlanRefusesWhatWasExchanged(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, scaling(1.5, 1, "secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	const (
		text = "model: m\nversion: 1.0.0\nsource: model.onnx\ncases: cases/\ncalibration: more/\n" +
			"variants: [{name: int8, quantize: {method: static}}]\ntargets: [linux/amd64/v1]\nassets: [words.txt]\n"
		withLibrary = "model: m\nversion: 1.0.0\nsource: {path: model.onnx, operators: [ops.so]}\ncases: cases/\nvariants: [fp32]\ntargets: [linux/amd64/v1]\n"
	)
	files := map[string]string{"model.onnx": string(scaling(1.5, 1, "")), "ops.so": library, "words.txt": "cat\n"}
	for _, file := range []string{"model.onnx", "ops.so", "words.txt", "cases/cases-00000.safetensors", "more/more.safetensors"} {
		for how, exchange := range map[string]func(path string) error{
			"taken away":                             os.Remove,
			"exchanged for a link out of the folder": func(path string) error { return errors.Join(os.Remove(path), os.Symlink(outside, path)) },
			"exchanged for a folder":                 func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		} {
			t.Run(file+" "+how, func(t *testing.T) {
				t.Parallel()
				w := setup(t, 1.5)
				w.put(t, files)
				if err := os.Mkdir(filepath.Join(w.dir, "more"), 0o700); err != nil {
					t.Fatal(err)
				}
				writeCases(t, filepath.Join(w.dir, "more", "more.safetensors"), []float32{7, 8})
				s := w.spec(t, map[bool]string{true: withLibrary, false: text}[file == "ops.so"])
				if _, err := build.Plan(t.Context(), w.p, s); err != nil {
					t.Fatalf("before: %v", err)
				}
				if err := exchange(filepath.Join(w.dir, file)); err != nil {
					t.Fatal(err)
				}
				p, err := build.Plan(t.Context(), w.p, s)
				if err == nil {
					t.Errorf("plan %s, want an error that names %s", p.Digest, file)
				} else if !strings.Contains(err.Error(), filepath.Dir(file)) && !strings.Contains(err.Error(), file) {
					t.Errorf("error %v, want one that names %s", err, file)
				}
				if _, err := build.Build(t.Context(), w.p, s, build.Options{}); err == nil {
					t.Error("the build succeeds, want an error")
				}
			})
		}
	}
}

// library begins like a shared library of Linux.
const library = "\x7fELF\x02\x01\x01"

// What a spec names is looked at before anything is made of it, by a plan and by a build.
// An attack in it is refused, and so is what does not fit.
func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	onnx := string(scaling(1.5, 1, "made by hand"))
	generated := func(edits ...string) string {
		text := "model: m\nversion: 1.0.0\nsource: model.onnx\ncases: {generate: 4, seed: 1}\nvariants: [fp32]\ntargets: [linux/amd64/v1]\n"
		return strings.NewReplacer(edits...).Replace(text)
	}
	asIs := "[{name: int8, quantize: {method: none}}]"
	for name, c := range map[string]struct {
		text  string
		files map[string]string
		code  registry.Code
		want  string
	}{
		"a pickle called ONNX":          {generated(), map[string]string{"model.onnx": pickle}, registry.CodeUnsafe, "model.onnx"},
		"text called ONNX":              {generated(), map[string]string{"model.onnx": "hello, this is text"}, registry.CodeInvalid, "model.onnx"},
		"an operator without a library": {generated(), map[string]string{"model.onnx": string(custom())}, registry.CodeInvalid, "operators of my.ops need a library"},
		"a library that is text": {generated("source: model.onnx", "source: {path: model.onnx, operators: [ops.so]}"),
			map[string]string{"model.onnx": string(custom()), "ops.so": "#!/bin/sh\nrm -rf /\n"}, registry.CodeInvalid, "source.operators: "},
		"a library that is a pickle": {generated("source: model.onnx", "source: {path: model.onnx, operators: [ops.so]}"),
			map[string]string{"model.onnx": string(custom()), "ops.so": pickle}, registry.CodeUnsafe, "source.operators: "},
		"an asset that is a pickle": {generated() + "assets: [words.txt]\n",
			map[string]string{"model.onnx": onnx, "words.txt": pickle}, registry.CodeUnsafe, "assets: "},
		"weights beside the model that are missing":           {generated(), map[string]string{"model.onnx": string(external("weights.bin"))}, registry.CodeInvalid, "weights.bin"},
		"weights beside the model that are out of the folder": {generated(), map[string]string{"model.onnx": string(external("../weights.bin"))}, registry.CodeUnsafe, "weights.bin"},
		"weights beside the model that are too short": {generated(),
			map[string]string{"model.onnx": string(external("weights.bin")), "weights.bin": "x"}, registry.CodeInvalid, "weights.bin"},
		"an asset with the name of the labels": {generated() + "assets: [labels.json]\noutputs: {y: {labels: [cat]}}\n",
			map[string]string{"model.onnx": onnx, "labels.json": "{}"}, registry.CodeInvalid,
			"labels.json is the file that a build writes"},
		"a pickle that is not trusted": {generated("source: model.onnx", "source: {path: m.pkl, format: pickle}"),
			map[string]string{"m.pkl": pickle}, registry.CodeUnsafe, "the spec does not trust this one"},
		"safetensors that are a pickle":  {generated("source: model.onnx", "source: {path: m.skops, format: skops}"), map[string]string{"m.skops": pickle}, registry.CodeUnsafe, "m.skops"},
		"a folder that is no SavedModel": {generated("source: model.onnx", "source: {path: saved, format: savedmodel}"), map[string]string{"saved/notes.txt": "x"}, registry.CodeInvalid, "saved"},
		"an input without a shape":       {generated(), map[string]string{"model.onnx": string(shapeless())}, registry.CodeInvalid, `input "x" has no shape`},
		"an output of text": {generated(),
			map[string]string{"model.onnx": strings.Replace(onnx, string(floats("y")), string(texts("y")), 1)}, registry.CodeInvalid, `output "y" is string`},
		"a kind for no output":     {generated() + "outputs: {z: {kind: value}}\n", map[string]string{"model.onnx": onnx}, registry.CodeInvalid, "z"},
		"a size for no dimension":  {generated() + "shapes: {batch: 4}\n", map[string]string{"model.onnx": onnx}, registry.CodeInvalid, "batch"},
		"a kind that does not fit": {generated() + "outputs: {y: {kind: tokens}}\n", map[string]string{"model.onnx": onnx}, registry.CodeInvalid, "y"},
		"labels of another number": {generated() + "outputs: {y: {labels: [cat, dog]}}\n", map[string]string{"model.onnx": onnx}, registry.CodeInvalid, "2"},
		"calibration that is text": {generated("[fp32]", "[{name: int8, quantize: {method: static}}]") + "calibration: calibration/\n",
			map[string]string{"model.onnx": onnx, "calibration/a.safetensors": "text"}, registry.CodeInvalid, "a.safetensors"},
		"labels twice": {generated() + "outputs: {y: {labels: [cat, cat]}}\n", map[string]string{"model.onnx": onnx}, registry.CodeInvalid, "cat"},
		"weights called safetensors": {generated("source: model.onnx", "source: {path: w.safetensors, format: safetensors, architecture: {kind: mlp, input: [4], layers: [first, relu]}}"),
			map[string]string{"w.safetensors": "text"}, registry.CodeInvalid, "w.safetensors"},
		"text called TensorFlow Lite": {generated("source: model.onnx", "source: {path: m.tflite, format: tflite}"), map[string]string{"m.tflite": "text"}, registry.CodeInvalid, "m.tflite"},
		"a SavedModel":                {generated("source: model.onnx", "source: {path: saved, format: savedmodel}"), map[string]string{"saved/saved_model.pb": savedModel()}, "", ""},
		"quantized already": {generated(), map[string]string{"model.onnx": string(quantizedModel())}, registry.CodeInvalid,
			"so nothing makes it fp32: write variants: [{name: int8, quantize: {method: none}}]"},
		"quantized a second time": {generated("[fp32]", "[{name: int8, quantize: {method: dynamic}}]"), map[string]string{"model.onnx": string(quantizedModel())}, registry.CodeInvalid,
			"and is not quantized again"},
		"quantized to another precision": {generated("[fp32]", "[{name: int4, quantize: {method: none}}]"), map[string]string{"model.onnx": string(quantizedModel())}, registry.CodeInvalid,
			"to int8: name the variant so"},
		"not quantized, as it is": {generated("[fp32]", asIs), map[string]string{"model.onnx": onnx}, registry.CodeInvalid,
			"is to stay as it is, and model.onnx is not quantized"},
		"quantized, as it is": {generated("[fp32]", asIs), map[string]string{"model.onnx": string(quantizedModel())}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.imports(1.5)
			w.put(t, c.files)
			s := w.spec(t, c.text)
			_, plan := build.Plan(t.Context(), w.p, s)
			_, build := build.Build(t.Context(), w.p, s, build.Options{})
			for verb, err := range map[string]error{"plan": plan, "build": build} {
				if verb == "build" && c.code == "" {
					continue // the driver of this test runs other models
				}
				if (err == nil) != (c.code == "") || err != nil && (registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%s: error %v (%s), want %q with %q", verb, err, registry.CodeOf(err), c.code, c.want)
				}
			}
			if heads, err := w.Heads(t.Context(), "staging", ""); err != nil || len(heads) != 0 && c.code != "" {
				t.Errorf("heads %v, error %v; want nothing published", heads, err)
			}
		})
	}
}

// put writes files into the folder of the world.
func (w *world) put(t *testing.T, files map[string]string) {
	t.Helper()
	for name := range maps.Keys(files) {
		path := filepath.Join(w.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// shapeless is a model whose input has no shape.
func shapeless() []byte {
	g := new(graph)
	g.inputs = sub(nil, 11, sub(str(nil, 1, "x"), 2, sub(nil, 1, num(nil, 1, onnxFloat))))
	return g.node("Relu", []string{"x"}, "y", nil).onnx(1, 1)
}

// external is a model whose weights are in a file beside it.
func external(location string) []byte {
	g := new(graph).input(onnxFloat, 1, 4)
	w := str(num(num(num(nil, 1, 4), 1, 4), 2, onnxFloat), 8, "w")
	w = num(sub(w, 13, str(str(nil, 1, "location"), 2, location)), 14, 1)
	g.weights = sub(g.weights, 5, w)
	return g.node("MatMul", []string{"x", "w"}, "y", nil).onnx(1, 4)
}
