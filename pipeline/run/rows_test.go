package run

import (
	"path/filepath"
	"testing"
)

// Rows of a file that is not there, or not one of tensors, are an error and no empty file.
func TestWriteRowsOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := WriteRows(filepath.Join(dir, "out"), []RowsOf{{Path: filepath.Join(dir, "none"), End: 1, Count: 1}})
	if err == nil {
		t.Error("no error, want one about the missing file")
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*")); len(found) > 0 {
		t.Errorf("it left %q", found)
	}
}
