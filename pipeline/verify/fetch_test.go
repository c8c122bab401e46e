package verify

import (
	"os"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/validators"
)

// The labels of an engine are read up to the most that there may be.
func TestLabelsOfAnEngine(t *testing.T) {
	t.Parallel()
	f, c := fetcher{scratch: t.TempDir()}, run.Candidate{ID: "e1"}
	if got := f.labels(c); got != nil {
		t.Errorf("without a file: got %q, want nothing", got)
	}
	if err := os.Mkdir(filepath.Join(f.scratch, c.ID), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(f.scratch, c.ID, validators.LabelsFile)
	for _, size := range []int{0, 7, validators.MaxNamesBytes, validators.MaxNamesBytes + 5} {
		if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := f.labels(c); len(got) != min(size, validators.MaxNamesBytes+1) {
			t.Errorf("%d bytes: got %d", size, len(got))
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := f.labels(c); got != nil {
		t.Errorf("a folder: got %q, want nothing", got)
	}
}
