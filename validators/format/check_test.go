package format_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
)

func TestCheckPasses(t *testing.T) {
	t.Parallel()
	for file, kind := range map[string]format.Kind{
		"linear.onnx": format.ONNX, "branches.onnx": format.ONNX, "external.onnx": format.ONNX,
		"functions.onnx": format.ONNX, "floats.npy": format.Numpy,
	} {
		if err := format.Check(filepath.Join("testdata", file), kind, format.Limits{}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	plan := write(t, t.TempDir(), "engine.plan", []byte("ptrt\x00\x00\x00\x00"))
	if err := format.Check(plan, format.TensorRT, format.Limits{}); err != nil {
		t.Errorf("a plan where a plan is expected: %v", err)
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	pickle := string(testdata(t, "protocol4.pkl"))
	torch := string(zipped(t, "archive/data.pkl", pickle))
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
		{"cut", string(small()[:20]), format.ONNX, registry.CodeInvalid, "truncated at byte 20 of at least"},
		{"xz", "\xfd7zXZ\x00\x00\x04", format.Compressed, registry.CodeInvalid, "decompress it first"},
		{"damaged zip", "PK\x03\x04" + strings.Repeat("a", 40), format.Zip, registry.CodeInvalid, "damaged zip"},
		{"missing external data", string(modelOf(graphOf(msg{}.sub(5, external("w.bin", "", ""))))), format.ONNX, registry.CodeInvalid, "missing"},
		{"external data elsewhere", string(modelOf(graphOf(msg{}.sub(5, external("../w.bin", "", ""))))), format.ONNX, registry.CodeUnsafe, "outside"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := write(t, t.TempDir(), "model.onnx", []byte(tc.data))
			err := format.Check(path, tc.want, format.Limits{})
			wantCode(t, err, tc.code)
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
	model := write(t, dir, "model.onnx", small())
	link := filepath.Join(dir, "link.onnx")
	if err := os.Symlink(model, link); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{pipe: "not a regular file", dir: "is a folder", filepath.Join(dir, "none"): "no such file"} {
		err := format.Check(path, format.ONNX, format.Limits{})
		wantCode(t, err, registry.CodeInvalid)
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q does not say %q", err, says)
		}
	}
	if err := format.Check(link, format.ONNX, format.Limits{}); err != nil {
		t.Errorf("a model behind a link of the user's own: %v", err)
	}
	wantCode(t, format.Check(model, format.ONNX, format.Limits{MaxBytes: 5}), registry.CodeInvalid)
}

// A model of the limit's size passes.
func TestCheckAtTheLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := write(t, dir, "engine.plan", []byte("ptrt\x00\x00\x00\x00"))
	if err := format.Check(path, format.TensorRT, format.Limits{MaxBytes: 8}); err != nil {
		t.Errorf("8 bytes of 8: %v", err)
	}
	if err := format.Check(path, format.TensorRT, format.Limits{MaxBytes: 7}); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("8 bytes of 7: error %v, want CodeInvalid", err)
	}
}
