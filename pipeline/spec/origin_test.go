package spec_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

// The digest of one file is the file's, and the digest of several follows from sha256sum.
func TestPinOf(t *testing.T) {
	t.Parallel()
	one := map[string]registry.Digest{"model.onnx": digest.FromString("bytes")}
	if got := spec.PinOf(one); got != digest.FromString("bytes") {
		t.Errorf("one file: %s", got)
	}
	dir := t.TempDir()
	several := make(map[string]registry.Digest)
	for _, name := range []string{"variables/b", "saved_model.pb", "variables/a"} {
		several[name] = digest.FromString(name)
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sha256sum", "saved_model.pb", "variables/a", "variables/b")
	cmd.Dir = dir
	out, err := cmd.Output()
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256(out)); err != nil || spec.PinOf(several).String() != want {
		t.Errorf("several files: %s, want %s (error %v) of\n%s", spec.PinOf(several), want, err, strings.TrimSpace(string(out)))
	}
}
