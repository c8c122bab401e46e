package ingest

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/confined"
)

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

// What a file names starts from its folder.
func TestBeside(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{{"model.onnx", "weights.bin", "weights.bin"}, {"a/b/model.onnx", "weights.bin", "a/b/weights.bin"}, {"a/model.onnx", "../w", "w"}} {
		if got := beside(c[0], c[1]); got != c[2] {
			t.Errorf("%s beside %s: got %s, want %s", c[1], c[0], got, c[2])
		}
	}
}
