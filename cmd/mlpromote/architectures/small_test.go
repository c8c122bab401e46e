//go:build cgo && linux

package architectures

import (
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
)

// TestArchitecturesAsPulled takes small models to prod on ONNX Runtime: a MobileNet, a CRNN, a vision transformer, a text
// detector, and a VAD whose state is an input and an output. It loads what is pulled without anything of ours, alone and in
// stacks of four: it gives what ONNX's own evaluator computed.
func TestArchitecturesAsPulled(t *testing.T) {
	t.Parallel()
	for name, variants := range map[string][]string{
		"inverted": {"fp32"},
		"crnn":     {"fp32", "fp16", "int4-weights"},
		"vit":      {"fp32", "int8-static"}, // with tensors that are called as the quantizer calls its own
		"detector": {"int8-static"},
		"vad":      {"fp32", "fp16"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := programtest.Cache(t)
			python, err := (&install.Installer{Root: cache}).Find("onnxruntime")
			if err != nil {
				t.Fatal(err)
			}
			model := t.TempDir()
			must(t, python.Interpreter(), "-B", "testdata/shapes.py", name, model)
			r := &release{architecture: name, runtime: "onnxruntime", model: model, dir: t.TempDir(), cache: cache, variants: variants}
			for _, got := range r.run(t) {
				if !got.pulled() || !got.agrees() {
					t.Errorf("%s: %s%s, pulled %q, loaded plainly %v; want outputs within the limits at each size of batch",
						got.Variant, got.Error, got.Reason, got.Pulled, got.Plain)
				}
			}
		})
	}
}
