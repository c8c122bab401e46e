//go:build cgo

package endtoend

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// interopPython is a Python with the packages of tools/interop/requirements.lock. It skips the test where there is none.
func interopPython(t *testing.T) string {
	t.Helper()
	path := os.Getenv("MLPROMOTE_INTEROP_PYTHON")
	if path == "" {
		t.Skip("MLPROMOTE_INTEROP_PYTHON names no Python; make interop makes one")
	}
	return path
}

// The reference implementation of OpenSSF Model Signing accepts the signature of a pulled folder, with its key and its
// files alone.
func testModelSigning(t *testing.T, p *plain) {
	python := interopPython(t)
	dir := t.TempDir()
	folder, signature, other := filepath.Join(dir, "digits"), filepath.Join(dir, "model.sig"), filepath.Join(dir, "other", "promoter.pub")
	p.must(t, "pull", programtest.Model, "--env", "prod", "-o", folder)
	p.must(t, "export", "model-signature", folder, "--env", "prod", "--model", programtest.Model, "-o", signature)
	p.must(t, "key", "generate", "--role", "promoter", "--keys", filepath.Dir(other))
	ours := filepath.Join(p.Dir, "keys", "local.pub")
	changed := func(name string, change func(dir string) error) string {
		copied := filepath.Join(dir, name)
		if err := errors.Join(programtest.CopyTree(folder, copied), change(copied)); err != nil {
			t.Fatal(err)
		}
		return copied
	}
	write := func(file string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, file), []byte("another model"), 0o600) }
	}
	for name, c := range map[string]struct{ folder, key, want string }{
		"as pulled":      {folder, ours, ""},
		"another key":    {folder, other, "Key mismatch"},
		"a changed file": {changed("changed", write("model.onnx")), ours, "Hash mismatch"},
		"another file":   {changed("more", write("second.onnx")), ours, "Extra files"},
		"a file less":    {changed("less", func(dir string) error { return os.Remove(filepath.Join(dir, "model.onnx")) }), ours, "Missing files"},
	} {
		out, err := exec.CommandContext(t.Context(), python, "-m", "model_signing", "verify", "key", "--signature", signature, "--public_key", c.key, c.folder).CombinedOutput()
		if (err == nil) != (c.want == "") || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, want %q\n%s", name, err, c.want, out)
		}
	}
}
