package pipeline_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/draft"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

// ggufWorld has the files of testdata for llama.cpp, and an importer that makes another model of them.
func ggufWorld(t *testing.T) *world {
	t.Helper()
	w := setup(t, 1.5)
	for _, name := range []string{"q8_0.gguf", "f16.gguf"} {
		data, err := os.ReadFile(filepath.Join("../cmd/mlpromote/testdata/models/gguf", name))
		if err != nil {
			t.Fatal(err)
		}
		w.put(t, map[string]string{name: string(data)})
	}
	w.p.ImporterOf = func(string) (string, error) { return "importer", nil }
	open := w.p.Toolchain
	w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
		if name == "llama-cpp" {
			name = "onnxruntime"
		}
		tools, err := open(ctx, name)
		tools.Importer, tools.Framework = converter{model: scalingOf(1.5, 1, "", pairs), result: `{}`}, "torch"
		if tools.Profile.Name != "" {
			tools.Profile.Sources = []string{spec.FormatGGUF}
		}
		return tools, err
	}
	return w
}

// Variants that stay as a GGUF file is have the precision that llama.cpp computes with, for llama.cpp alone.
func TestGGUFAsItIs(t *testing.T) {
	t.Parallel()
	const as = `model: words
version: 1.0.0
source: {path: FILE, format: gguf}
SHAPEScases: {generate: 8, seed: 1}
variants: [{name: NAME, quantize: {method: none}}]
targets: [{name: cpu, cpu: {arch: amd64}, toolchain: TOOL}]
`
	for name, c := range map[string]struct{ file, shapes, variant, tool, want string }{
		"8-bit weights":              {"q8_0.gguf", "", "int8", "llama-cpp", ""},
		"fp16 weights":               {"f16.gguf", "", "fp16", "llama-cpp", ""},
		"8-bit weights as fp16":      {"q8_0.gguf", "", "fp16", "llama-cpp", "variant fp16: q8_0.gguf is llama, \"words\", 13152 parameters as Q8_0, F32"},
		"fp16 weights as int8":       {"f16.gguf", "", "int8", "llama-cpp", "llama.cpp computes in fp16: name the variant so"},
		"a compiler of ONNX":         {"q8_0.gguf", "", "int8", "onnxruntime", "only llama-cpp takes the file as it is"},
		"longer than its context":    {"q8_0.gguf", "shapes: {sequence: [1, 8, 49]}\n", "int8", "llama-cpp", "sequence is up to 49 tokens, and q8_0.gguf has 48 tokens of context"},
		"in full precision":          {"q8_0.gguf", "", "fp32", "llama-cpp", "variant fp32: llama-cpp takes q8_0.gguf as it is, which is llama"},
		"another name than int8 has": {"q8_0.gguf", "", "int4", "llama-cpp", "name it after the source's precision, int8 or fp16"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ggufWorld(t)
			text := strings.NewReplacer("FILE", c.file, "SHAPES", c.shapes, "NAME", c.variant, "TOOL", c.tool).Replace(as)
			text = strings.Replace(text, "{name: fp32, quantize: {method: none}}", "fp32", 1)
			w.put(t, map[string]string{spec.File: text})
			s, err := spec.Load(filepath.Join(w.dir, spec.File), spec.Options{})
			if err == nil {
				_, err = build.Plan(t.Context(), w.p, s)
			}
			if c.want == "" && err != nil || c.want != "" && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// init writes a target for llama.cpp and the precision that it computes with.
func TestDraftOfGGUF(t *testing.T) {
	t.Parallel()
	for name, variant := range map[string]string{
		"q8_0.gguf": "variants: [{name: int8, quantize: {method: none}}]",
		"f16.gguf":  "variants: [{name: fp16, quantize: {method: none}}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ggufWorld(t)
			file := filepath.Join(w.dir, name)
			if found, err := draft.FormatOf(file); err != nil || found != spec.FormatGGUF {
				t.Fatalf("format %q, %v", found, err)
			}
			opened, err := draft.Import(t.Context(), w.p, file, spec.FormatGGUF, nil)
			if err != nil {
				t.Fatal(err)
			}
			drafted, err := opened.Draft(filepath.Join(w.dir, spec.File), "linux/arm64/v2", nil, "")
			if err != nil {
				t.Fatal(err)
			}
			const target = "targets: [{name: linux-arm64-v2, os: linux, cpu: {arch: arm64, level: v2}, toolchain: llama-cpp}]"
			for _, want := range []string{variant, target} {
				if !strings.Contains(string(drafted.Text), want) {
					t.Errorf("the spec is\n%s\nwant %s in it", drafted.Text, want)
				}
			}
			if said := strings.Join(drafted.Warnings, "\n"); !strings.Contains(said, "48 tokens of context") {
				t.Errorf("init warns %q, want what the file is", said)
			}
		})
	}
}

// A model of which no reference model can be made is refused before anything imports it.
func TestGGUFTooLarge(t *testing.T) {
	t.Parallel()
	w := ggufWorld(t)
	const large = "\x47GUF\x03\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + // a tensor, no keys
		"\x01\x00\x00\x00\x00\x00\x00\x00w" + "\x01\x00\x00\x00" + "\x20\x00\x00\x20\x00\x00\x00\x00" + "\x08\x00\x00\x00" + // w, [1 << 29 + 32], Q8_0
		"\x00\x00\x00\x00\x00\x00\x00\x00"
	file := filepath.Join(w.dir, "large.gguf")
	w.put(t, map[string]string{"large.gguf": large})
	if err := os.Truncate(file, 1<<30); err != nil {
		t.Fatal(err)
	}
	_, err := draft.Import(t.Context(), w.p, file, spec.FormatGGUF, nil)
	if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "536870944 parameters, and its reference model, in fp32, can have at most 536870912") {
		t.Errorf("error %v, want that it is too large", err)
	}
}
