package imageform_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/imageform"
)

// pageProgram writes the Python program of the page into a file.
func pageProgram(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/image-form.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```python\n")
	program, _, ended := strings.Cut(rest, "```\n")
	if !found || !ended {
		t.Fatal("the page has no Python program")
	}
	path := filepath.Join(t.TempDir(), "image_form.py")
	if err := os.WriteFile(path, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The program on the page recomputes the image form of every folder that pull can make.
func TestPageRecomputes(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	program := pageProgram(t)
	for name, c := range samples() {
		dir := t.TempDir()
		layers := []map[string]any{}
		for path, data := range c {
			file := filepath.Join(dir, filepath.FromSlash(path))
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
			layers = append(layers, map[string]any{"annotations": map[string]string{"org.opencontainers.image.title": path}})
		}
		manifest, err := json.Marshal(map[string]any{"layers": layers,
			"annotations": map[string]string{"dev.mlpromote.target": `{"cpu":{"arch":"arm64"},"os":"linux"}`}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, ".mlpromote"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".mlpromote", "manifest.json"), manifest, 0o600); err != nil {
			t.Fatal(err)
		}
		e := artifact.Engine{Digest: digest.FromBytes(manifest), Target: artifact.Target{OS: "linux", CPU: artifact.TargetCPU{Arch: "arm64"}}}
		want, err := imageform.Make(t.Context(), imageform.Of(e, c.files()), c.open)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), python, "-I", program, dir).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != string(want.Digest) {
			t.Errorf("%s: the page's program prints %s, error %v, want %s", name, got, err, want.Digest)
		}
	}
}
