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

func TestCheckExternalData(t *testing.T) {
	t.Parallel()
	outside := write(t, t.TempDir(), "secret", make([]byte, 64))
	dir := t.TempDir()
	write(t, dir, "w.bin", make([]byte, 64))
	write(t, dir, "sub/w..bin", make([]byte, 64))
	write(t, dir, "short.bin", make([]byte, 7))
	for name, target := range map[string]string{"link.bin": outside, "inside.bin": "w.bin", "linked": "sub", "up": ".."} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		location string
		code     registry.Code // empty if it passes
	}{
		{"w.bin", ""}, {"./w.bin", ""}, {"sub/w..bin", ""},
		{outside, registry.CodeUnsafe}, {"../secret", registry.CodeUnsafe}, {"sub/../w.bin", registry.CodeUnsafe},
		{"sub/../../x", registry.CodeUnsafe}, {`..\secret`, registry.CodeUnsafe}, {`C:/secret`, registry.CodeUnsafe},
		{"w.bin\x00", registry.CodeUnsafe}, {strings.Repeat("a", 300), registry.CodeUnsafe},
		{"link.bin", registry.CodeUnsafe}, {"inside.bin", registry.CodeUnsafe}, {"linked/w..bin", registry.CodeUnsafe},
		{"up/x", registry.CodeUnsafe}, {"sub", registry.CodeUnsafe}, {".", registry.CodeUnsafe}, {"w.bin/x", registry.CodeUnsafe},
		{"none.bin", registry.CodeInvalid}, {"short.bin", registry.CodeInvalid},
	}
	for _, tc := range tests {
		t.Run(strings.ReplaceAll(tc.location, "/", "|"), func(t *testing.T) {
			t.Parallel()
			m, err := read(t, modelOf(graphOf(msg{}.sub(5, external(tc.location, "", "")))))
			if err != nil {
				t.Fatal(err)
			}
			switch err := format.CheckExternalData(dir, m); {
			case tc.code == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.code != "":
				wantCode(t, err, tc.code)
			}
		})
	}
}
