package format_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/formattest"
)

func TestCheckPasses(t *testing.T) {
	t.Parallel()
	for file, kind := range map[string]format.Kind{
		"onnx/testdata/linear.onnx": format.ONNX, "onnx/testdata/branches.onnx": format.ONNX, "onnx/testdata/external.onnx": format.ONNX,
		"onnx/testdata/functions.onnx": format.ONNX, "testdata/floats.npy": format.Numpy,
	} {
		if err := format.Check(file, kind, bound.Limits{}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	plan := formattest.Write(t, t.TempDir(), "engine.plan", []byte("ptrt\x00\x00\x00\x00"))
	if err := format.Check(plan, format.TensorRT, bound.Limits{}); err != nil {
		t.Errorf("a plan where a plan is expected: %v", err)
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	pickle := string(formattest.Testdata(t, "protocol4.pkl"))
	torch := string(formattest.Zipped(t, "archive/data.pkl", pickle))
	tests := []struct {
		name string
		data string
		want format.Kind
		code registry.Code
		says string
	}{
		{"pickle", pickle, format.ONNX, registry.CodeUnsafe, "a Python pickle, expected an ONNX model; pickles run code when they are loaded: export the model to ONNX"},
		{"pickle even if wanted", pickle, format.Pickle, registry.CodeUnsafe, "pickles run code"},
		{"torch", torch, format.ONNX, registry.CodeUnsafe, `(entry "archive/data.pkl")`},
		{"torch as zip", torch, format.Zip, registry.CodeUnsafe, "pickles run code"},
		{"hdf5", "\x89HDF\r\n\x1a\n", format.ONNX, registry.CodeUnsafe, "Keras layers"},
		{"plan", "ptrt\x00\x00", format.ONNX, registry.CodeUnsafe, "compiled code"},
		{"empty", "", format.ONNX, registry.CodeInvalid, "is empty"},
		{"empty even if wanted", "", format.Empty, registry.CodeInvalid, "is empty"},
		{"unknown even if wanted", "hello world", format.Unknown, registry.CodeInvalid, "an unknown format"},
		{"safetensors", "\x02\x00\x00\x00\x00\x00\x00\x00{}", format.ONNX, registry.CodeInvalid, "a safetensors file, expected an ONNX model"},
		{"text", "hello world", format.ONNX, registry.CodeInvalid, "not an ONNX model"},
		{"cut", string(formattest.Small()[:20]), format.ONNX, registry.CodeInvalid, "truncated at byte 20 of at least"},
		{"xz", "\xfd7zXZ\x00\x00\x04", format.Compressed, registry.CodeInvalid, "decompress it first"},
		{"damaged zip", "PK\x03\x04" + strings.Repeat("a", 40), format.Zip, registry.CodeInvalid, "is cut off or damaged: it begins as a zip archive"},
		{"missing external data", string(formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(5, formattest.External("w.bin", "", ""))))), format.ONNX, registry.CodeInvalid, "missing"},
		{"external data elsewhere", string(formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(5, formattest.External("../w.bin", "", ""))))), format.ONNX, registry.CodeUnsafe, "outside"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := formattest.Write(t, t.TempDir(), "model.onnx", []byte(tc.data))
			err := format.Check(path, tc.want, bound.Limits{})
			formattest.WantCode(t, err, tc.code)
			if msg := err.Error(); !strings.Contains(msg, tc.says) || !strings.Contains(msg, path) {
				t.Errorf("%q does not say %q and the path", msg, tc.says)
			}
		})
	}
}

func TestCheckFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	model := formattest.Write(t, dir, "model.onnx", formattest.Small())
	link := filepath.Join(dir, "link.onnx")
	if err := os.Symlink(model, link); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{pipe: "not a regular file", dir: "is a folder", filepath.Join(dir, "none"): "no such file"} {
		err := format.Check(path, format.ONNX, bound.Limits{})
		formattest.WantCode(t, err, registry.CodeInvalid)
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q does not say %q", err, says)
		}
	}
	if err := format.Check(link, format.ONNX, bound.Limits{}); err != nil {
		t.Errorf("a model behind a link of the user's own: %v", err)
	}
	formattest.WantCode(t, format.Check(model, format.ONNX, bound.Limits{MaxBytes: 5}), registry.CodeInvalid)
}

// A model of the limit's size passes.
func TestCheckAtTheLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := formattest.Write(t, dir, "engine.plan", []byte("ptrt\x00\x00\x00\x00"))
	if err := format.Check(path, format.TensorRT, bound.Limits{MaxBytes: 8}); err != nil {
		t.Errorf("8 bytes of 8: %v", err)
	}
	if err := format.Check(path, format.TensorRT, bound.Limits{MaxBytes: 7}); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("8 bytes of 7: error %v, want CodeInvalid", err)
	}
}
