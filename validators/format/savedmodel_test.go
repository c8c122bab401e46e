package format_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
)

// folderOf writes a SavedModel.
func folderOf(t *testing.T, graph msg) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "saved_model.pb", graph)
	for _, name := range []string{"variables/variables.index", "variables/variables.data-00000-of-00001", "assets/words/a.txt", "keras_metadata.pb"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, []byte("x"))
	}
	return dir
}

func TestCheckSavedModel(t *testing.T) {
	t.Parallel()
	files, err := format.CheckSavedModel(folderOf(t, saved(msg{}.str(2, "SaveV2"))), format.Limits{})
	want := []string{"saved_model.pb", "assets/words/a.txt", "variables/variables.data-00000-of-00001", "variables/variables.index"}
	if err != nil || !slices.Equal(files, want) {
		t.Errorf("files %v (%v), want %v", files, err, want)
	}
}

// What reaches out of the graph is found wherever an operator can stand.
func TestCheckSavedModelRefuses(t *testing.T) {
	t.Parallel()
	function := msg{}.sub(10, msg{}.str(1, "WriteFile"))
	list := msg{}.sub(1, msg{}.sub(9, msg{}.str(1, "EagerPyFunc")))
	for name, c := range map[string]struct {
		graph msg
		code  registry.Code
		says  string
	}{
		"operator":        {saved(msg{}.str(2, "ReadFile")), registry.CodeUnsafe, "its graph has ReadFile,"},
		"later version":   {saved(msg{}.str(2, "TextLineReaderV2")), registry.CodeUnsafe, "TextLineReaderV2"},
		"older name":      {saved(msg{}.str(2, "ExperimentalCSVDataset")), registry.CodeUnsafe, "ExperimentalCSVDataset"},
		"printing":        {saved(msg{}.str(2, "PrintV2")), registry.CodeUnsafe, "PrintV2"},
		"as a function":   {saved(msg{}.str(2, "PartitionedCall").sub(5, msg{}.str(1, "f").sub(2, function))), registry.CodeUnsafe, "WriteFile"},
		"in a list":       {saved(msg{}.str(2, "Case").sub(5, msg{}.str(1, "branches").sub(2, list))), registry.CodeUnsafe, "EagerPyFunc"},
		"in a later one":  {append(saved(msg{}.str(2, "Add")), saved(msg{}.str(2, "PyFunc"))[2:]...), registry.CodeUnsafe, "PyFunc"},
		"cut":             {saved(msg{}.str(2, "Add"))[:20], registry.CodeInvalid, "expected the graph of a TensorFlow SavedModel"},
		"another kind":    {small(), registry.CodeInvalid, "an ONNX model"},
		"cut in the node": {msg{}.num(1, 1).sub(2, msg{}.sub(2, msg{}.str(1, "\x12\x09Re"))), registry.CodeInvalid, "saved_model.pb: at byte"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := format.CheckSavedModel(folderOf(t, c.graph), format.Limits{})
			if registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s: %s", err, c.code, c.says)
			}
		})
	}
}

func TestSavedModelFolder(t *testing.T) {
	t.Parallel()
	linked := folderOf(t, saved(msg{}.str(2, "Add")))
	if err := os.Symlink("/etc/passwd", filepath.Join(linked, "assets", "words", "b.txt")); err != nil {
		t.Skipf("the file system has no symbolic links: %v", err)
	}
	_, err := format.CheckSavedModel(linked, format.Limits{})
	wantCode(t, err, registry.CodeUnsafe)
	graph := saved(msg{}.str(2, "Add"))
	_, err = format.CheckSavedModel(folderOf(t, graph), format.Limits{MaxBytes: int64(len(graph)) + 2})
	wantCode(t, err, registry.CodeInvalid)
	_, err = format.CheckSavedModel(filepath.Join(linked, "saved_model.pb"), format.Limits{})
	wantCode(t, err, registry.CodeInvalid)
	_, err = format.CheckSavedModel(t.TempDir(), format.Limits{})
	wantCode(t, err, registry.CodeInvalid)
}

// FuzzReadSavedModel expects operators or an error with a code, in bounded memory, and
// no operators of what is taken for another kind that carries none.
func FuzzReadSavedModel(f *testing.F) {
	f.Add([]byte(saved(msg{}.str(2, "MatMul").sub(5, msg{}.str(1, "f").sub(2, msg{}.sub(10, msg{}.str(1, "ReadFile")))))))
	f.Add([]byte(saved(msg{}.str(2, "Add"))[:20]))
	f.Add([]byte(small()))
	f.Add([]byte(nested(3)))
	f.Add(zipped(f, "a/data.pkl", "\x80\x02."))
	lim := format.Limits{MaxFields: 100_000, MaxMemory: 1 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		ops, err := format.ReadSavedModel(bytes.NewReader(data), int64(len(data)), lim)
		if err != nil {
			if code := registry.CodeOf(err); ops != nil || code != registry.CodeInvalid {
				t.Errorf("%v, code %q", err, code)
			}
			return
		}
		kept := 0
		for op, count := range ops {
			if kept += len(op); count < 1 || kept > 1<<20 {
				t.Errorf("%d times %q, %d bytes of names", count, op, kept)
			}
		}
	})
}

// The files of a SavedModel are counted, and so are their bytes.
func TestSavedModelAtTheLimits(t *testing.T) {
	t.Parallel()
	graph := saved(msg{}.str(2, "Add"))
	if _, err := format.CheckSavedModel(folderOf(t, graph), format.Limits{MaxBytes: int64(len(graph)) + 3}); err != nil {
		t.Errorf("three bytes beside the graph, of three: %v", err)
	}
	for files, ok := range map[int]bool{1023: true, 1024: false} { // beside saved_model.pb
		dir := t.TempDir()
		write(t, dir, "saved_model.pb", graph)
		for i := range files {
			write(t, filepath.Join(dir, "assets"), fmt.Sprint(i), nil)
		}
		names, err := format.CheckSavedModel(dir, format.Limits{})
		if ok && (err != nil || len(names) != files+1) {
			t.Errorf("%d files: %d names, error %v", files, len(names), err)
		}
		if !ok && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "more than 1024 files")) {
			t.Errorf("%d files: error %v, want CodeInvalid", files, err)
		}
	}
}
