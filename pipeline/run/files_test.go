package run

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/registry/storage"
)

// A file that vanishes before it is stored ends the step, by the error of the file.
func TestLostFiles(t *testing.T) {
	t.Parallel()
	lost := filepath.Join(t.TempDir(), "lost")
	for name, file := range map[string]storage.PartFile{
		"a file to store":        SettledFile("a", lost, "sha256:1", 3),
		"a file that may change": DiskFile("a", lost, "sha256:1", 3),
	} {
		if _, err := file.Open(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: error %v, want that the file does not exist", name, err)
		}
	}
}
