package toolchain_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// Opening an input returns the file that was hashed, or an error.
func TestInputIsTheFileThatWasHashed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, secret := filepath.Join(dir, "model.onnx"), filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(path, []byte("model"), 0o600), os.WriteFile(secret, []byte("model"), 0o600)); err != nil {
		t.Fatal(err)
	}
	in, err := toolchain.FileInput(toolchain.RoleModel, "m.onnx", path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := in.Open()
	if err != nil {
		t.Fatalf("the file as it was: %v", err)
	}
	f.Close()
	if err := errors.Join(os.Rename(path, path+"-aside"), os.Symlink(secret, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Open(); !registry.HasCode(err, registry.CodeDigest) {
		t.Errorf("another file in its place: error %v, want %s", err, registry.CodeDigest)
	}
}

// Hashing and opening do not block on a pipe.
func TestPipeIsNoInput(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := toolchain.FileInput(toolchain.RoleModel, "m.onnx", pipe); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("error %v, want %s", err, registry.CodeInvalid)
	}
}
