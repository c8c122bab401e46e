package savedmodel_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/formattest"
	"mlpromote.dev/mlpromote/validators/format/savedmodel"
)

// folderOf writes a SavedModel.
func folderOf(t *testing.T, graph formattest.Msg) string {
	t.Helper()
	dir := t.TempDir()
	formattest.Write(t, dir, "saved_model.pb", graph)
	for _, name := range []string{"variables/variables.index", "variables/variables.data-00000-of-00001", "assets/words/a.txt", "keras_metadata.pb"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		formattest.Write(t, dir, name, []byte("x"))
	}
	return dir
}

func TestCheck(t *testing.T) {
	t.Parallel()
	files, err := savedmodel.Check(folderOf(t, formattest.Saved(formattest.Msg{}.Str(2, "SaveV2"))), bound.Limits{})
	want := []string{"saved_model.pb", "assets/words/a.txt", "variables/variables.data-00000-of-00001", "variables/variables.index"}
	if err != nil || !slices.Equal(files, want) {
		t.Errorf("files %v (%v), want %v", files, err, want)
	}
}

// What reaches out of the graph is found wherever an operator can stand.
func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	function := formattest.Msg{}.Sub(10, formattest.Msg{}.Str(1, "WriteFile"))
	list := formattest.Msg{}.Sub(1, formattest.Msg{}.Sub(9, formattest.Msg{}.Str(1, "EagerPyFunc")))
	for name, c := range map[string]struct {
		graph formattest.Msg
		code  registry.Code
		says  string
	}{
		"operator":        {formattest.Saved(formattest.Msg{}.Str(2, "ReadFile")), registry.CodeUnsafe, "its graph has ReadFile,"},
		"later version":   {formattest.Saved(formattest.Msg{}.Str(2, "TextLineReaderV2")), registry.CodeUnsafe, "TextLineReaderV2"},
		"older name":      {formattest.Saved(formattest.Msg{}.Str(2, "ExperimentalCSVDataset")), registry.CodeUnsafe, "ExperimentalCSVDataset"},
		"printing":        {formattest.Saved(formattest.Msg{}.Str(2, "PrintV2")), registry.CodeUnsafe, "PrintV2"},
		"as a function":   {formattest.Saved(formattest.Msg{}.Str(2, "PartitionedCall").Sub(5, formattest.Msg{}.Str(1, "f").Sub(2, function))), registry.CodeUnsafe, "WriteFile"},
		"in a list":       {formattest.Saved(formattest.Msg{}.Str(2, "Case").Sub(5, formattest.Msg{}.Str(1, "branches").Sub(2, list))), registry.CodeUnsafe, "EagerPyFunc"},
		"in a later one":  {append(formattest.Saved(formattest.Msg{}.Str(2, "Add")), formattest.Saved(formattest.Msg{}.Str(2, "PyFunc"))[2:]...), registry.CodeUnsafe, "PyFunc"},
		"cut":             {formattest.Saved(formattest.Msg{}.Str(2, "Add"))[:20], registry.CodeInvalid, "expected the graph of a TensorFlow SavedModel"},
		"another kind":    {formattest.Small(), registry.CodeInvalid, "an ONNX model"},
		"cut in the node": {formattest.Msg{}.Num(1, 1).Sub(2, formattest.Msg{}.Sub(2, formattest.Msg{}.Str(1, "\x12\x09Re"))), registry.CodeInvalid, "saved_model.pb: at byte"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := savedmodel.Check(folderOf(t, c.graph), bound.Limits{})
			if registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s: %s", err, c.code, c.says)
			}
		})
	}
}

func TestCheckFolder(t *testing.T) {
	t.Parallel()
	linked := folderOf(t, formattest.Saved(formattest.Msg{}.Str(2, "Add")))
	if err := os.Symlink("/etc/passwd", filepath.Join(linked, "assets", "words", "b.txt")); err != nil {
		t.Skipf("the file system has no symbolic links: %v", err)
	}
	_, err := savedmodel.Check(linked, bound.Limits{})
	formattest.WantCode(t, err, registry.CodeUnsafe)
	graph := formattest.Saved(formattest.Msg{}.Str(2, "Add"))
	_, err = savedmodel.Check(folderOf(t, graph), bound.Limits{MaxBytes: int64(len(graph)) + 2})
	formattest.WantCode(t, err, registry.CodeInvalid)
	_, err = savedmodel.Check(filepath.Join(linked, "saved_model.pb"), bound.Limits{})
	formattest.WantCode(t, err, registry.CodeInvalid)
	_, err = savedmodel.Check(t.TempDir(), bound.Limits{})
	formattest.WantCode(t, err, registry.CodeInvalid)
}

// FuzzRead expects operators or an error with a code, in bounded memory, and
// no operators of what is taken for another kind that carries none.
func FuzzRead(f *testing.F) {
	f.Add([]byte(formattest.Saved(formattest.Msg{}.Str(2, "MatMul").Sub(5, formattest.Msg{}.Str(1, "f").Sub(2, formattest.Msg{}.Sub(10, formattest.Msg{}.Str(1, "ReadFile")))))))
	f.Add([]byte(formattest.Saved(formattest.Msg{}.Str(2, "Add"))[:20]))
	f.Add([]byte(formattest.Small()))
	f.Add([]byte(formattest.Nested(3)))
	f.Add(formattest.Zipped(f, "a/data.pkl", "\x80\x02."))
	lim := bound.Limits{MaxFields: 100_000, MaxMemory: 1 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		ops, err := savedmodel.Read(bytes.NewReader(data), int64(len(data)), lim)
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
func TestCheckAtTheLimits(t *testing.T) {
	t.Parallel()
	graph := formattest.Saved(formattest.Msg{}.Str(2, "Add"))
	if _, err := savedmodel.Check(folderOf(t, graph), bound.Limits{MaxBytes: int64(len(graph)) + 3}); err != nil {
		t.Errorf("three bytes beside the graph, of three: %v", err)
	}
	for files, ok := range map[int]bool{1023: true, 1024: false} { // beside saved_model.pb
		dir := t.TempDir()
		formattest.Write(t, dir, "saved_model.pb", graph)
		for i := range files {
			formattest.Write(t, filepath.Join(dir, "assets"), fmt.Sprint(i), nil)
		}
		names, err := savedmodel.Check(dir, bound.Limits{})
		if ok && (err != nil || len(names) != files+1) {
			t.Errorf("%d files: %d names, error %v", files, len(names), err)
		}
		if !ok && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "more than 1024 files")) {
			t.Errorf("%d files: error %v, want CodeInvalid", files, err)
		}
	}
}
