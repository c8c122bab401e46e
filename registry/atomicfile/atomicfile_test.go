package atomicfile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/registry/atomicfile"
)

// check fails unless the folder of path has this one file, with the content and mode.
func check(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || string(data) != content {
		t.Errorf("read %s: got %q, %v, want %q", path, data, err, content)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != mode {
		t.Errorf("mode of %s: got %v, %v, want %v", path, info.Mode(), err, mode)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("files beside %s: got %v, %v, want none", path, entries, err)
	}
}

func TestWriteReplaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"first", ""} {
		if err := atomicfile.Write(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		check(t, path, content, 0o640)
	}
}

func TestFailedWriteKeepsOldFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := atomicfile.Write(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := atomicfile.WriteFrom(path, 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, "new")
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got error %v, want %v", err, broken)
	}
	check(t, path, "old", 0o600)
}

func TestCreateKeepsExistingFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := atomicfile.Create(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Create(path, []byte("second"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create again: got error %v, want %v", err, fs.ErrExist)
	}
	check(t, path, "first", 0o600)
}

func TestWriteOntoFolderLeavesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, nil, 0o600); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("files beside the folder: got %v, %v, want none", entries, err)
	}
}
