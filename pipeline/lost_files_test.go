package pipeline

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/registry"
)

// A file that vanishes before it is stored ends the step, by the error of the file.
func TestLostFiles(t *testing.T) {
	t.Parallel()
	lost := filepath.Join(t.TempDir(), "lost")
	for name, file := range map[string]registry.PartFile{
		"a file to store":        settledFile("a", lost, "sha256:1", 3),
		"a file that may change": diskFile("a", lost, "sha256:1", 3),
	} {
		if _, err := file.Open(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: error %v, want that the file does not exist", name, err)
		}
	}
}

// A file of a spec that vanishes ends the step that reads it, by the error of the file.
func TestLostFileOfASpec(t *testing.T) {
	t.Parallel()
	here, err := confined.New(t.TempDir(), "the folder of the spec")
	if err != nil {
		t.Fatal(err)
	}
	if err := (specFiles{here}).look("lost.onnx", func(*os.File) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that the file does not exist", err)
	}
}

// Cases that vanish before candidates are timed end a tuning, by the error of the file.
func TestLostCasesOfATuning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lost := material{dir: dir, set: &registry.CaseSet{Count: 2, Shards: []registry.Shard{{File: "lost.safetensors", Count: 2}}}}
	measured := verification{p: &Pipeline{}, scratch: dir, fetched: fetched{expected: expected{cases: lost}}}
	if err := (&tuning{verify: measured}).time(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that the file does not exist", err)
	}
}
