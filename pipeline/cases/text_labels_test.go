package cases_test

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// npz writes a file as numpy.savez does: dtype and shape of each array, and its bytes.
func npz(t *testing.T, path string, arrays map[string][3]string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	archive := zip.NewWriter(f)
	for name, array := range arrays {
		head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", array[0], array[1])
		w, err := archive.Create(name + ".npy")
		if err == nil {
			_, err = w.Write(append(binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(head))), head+array[2]...))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
}

// Labels of text get the numbers of the classes that the model names so. Their bytes are never numbers.
func TestLabelsOfText(t *testing.T) {
	t.Parallel()
	named := classifier()
	named.Outputs[0].Kind, named.Outputs[0].Names = validators.KindProbability, []string{"stay", "go"}
	images := [3]string{"<f4", "(2, 3)", string(make([]byte, 24))}
	for name, c := range map[string]struct {
		iface  validators.Interface
		arrays map[string][3]string
		want   []float64
		says   string
	}{
		"names of classes":   {named, map[string][3]string{"x": images, "label": {"|S4", "(2,)", "go\x00\x00stay"}}, []float64{1, 0}, ""},
		"in a column":        {named, map[string][3]string{"x": images, "label": {"|S4", "(2, 1)", "go\x00\x00stay"}}, []float64{1, 0}, ""},
		"another name":       {named, map[string][3]string{"x": images, "label": {"|S4", "(2,)", "go\x00\x00wait"}}, nil, `case 1 is "wait", which is no class of the model: want one of ["stay" "go"]`},
		"no names":           {classifier(), map[string][3]string{"x": images, "label": {"|S2", "(2,)", "gono"}}, nil, `labels "label": they are text, and the model does not name its classes`},
		"an input of text":   {classifier(), map[string][3]string{"x": {"|S3", "(2,)", "abcdef"}}, nil, `tensor "x": it is text, the model wants float32`},
		"bytes that are not": {classifier(), map[string][3]string{"x": images, "label": {"|u1", "(2,)", "\x00\x01"}}, []float64{0, 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, to := filepath.Join(dir, "x.npz"), filepath.Join(dir, "cases")
			npz(t, file, c.arrays)
			_, err := cases.Import{Inputs: c.iface, File: file, To: to}.Run()
			if c.says != "" {
				if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want %s: %s", err, registry.CodeInvalid, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tensors, err := tensorfile.ReadFile(filepath.Join(to, "cases-00000.safetensors"), tensorfile.Limits{})
			if got := tensors["label"]; err != nil || !slices.Equal(got.Float64s(), c.want) || len(got.Shape) != 1 {
				t.Errorf("labels %v %v (%v), want %v", got.Info(), got.Float64s(), err, c.want)
			}
		})
	}
}

// A folder of cases is read as it is, so that text in it is refused.
func TestFolderWithTextLabels(t *testing.T) {
	t.Parallel()
	images := [3]string{"<f4", "(2, 3)", string(make([]byte, 24))}
	for named, c := range map[string]struct {
		arrays map[string][3]string
		says   string
	}{
		"label": {map[string][3]string{"x": images, "label": {"|S2", "(2,)", "gono"}}, `labels "label" are text: want the numbers of the classes`},
		"":      {map[string][3]string{"x": images, "labels": {"|S2", "(2,)", "gono"}}, `labels "labels" are text`},
		"y":     {map[string][3]string{"x": {"|S3", "(2,)", "abcdef"}}, `tensor "x" is text, and the model wants float32`},
	} {
		dir := t.TempDir()
		npz(t, filepath.Join(dir, "a.npz"), c.arrays)
		_, err := labelsOf(t, dir, toolchain.RoleCases, named, anyNumbers())
		if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.says) {
			t.Errorf("labels %q: %v, want %s: %s", named, err, registry.CodeInvalid, c.says)
		}
	}
}

// Dimensions that a model bounds keep their bounds, and the others get the sizes of the cases.
func TestImportWithSomeSizes(t *testing.T) {
	t.Parallel()
	iface := validators.Interface{
		Inputs: []validators.TensorInfo{{Name: "x", DType: tensor.Float32, Shape: []validators.Dim{sym("batch"), sym("seq"), sym("width")}}},
		Dims:   map[string]validators.DimRange{"seq": {Min: 1, Opt: 1, Max: 8}},
	}
	for length, says := range map[int64]string{8: "", 9: "seq is from 1 to 8"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "x.safetensors")
		if err := cases.WriteShard(file, map[string]tensor.Tensor{"x": made(t, make([]float32, 3*length*70), 3, length, 70)}); err != nil {
			t.Fatal(err)
		}
		got, err := cases.Import{Inputs: iface, File: file, To: filepath.Join(dir, "cases")}.Run()
		if says != "" {
			if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), says) {
				t.Errorf("length %d: %v, want %s", length, err, says)
			}
			continue
		}
		if err != nil || got.Count != 3 || got.Interface.Dims["width"].Max != 70 || got.Interface.Dims["seq"].Max != 8 {
			t.Errorf("length %d: %d cases, sizes %v, %v; want 3 with a width of 70", length, got.Count, got.Interface.Dims, err)
		}
	}
}

// What no model makes right is refused before there is one.
func TestCheckImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	npz(t, filepath.Join(dir, "x.npz"), map[string][3]string{"x": {"<f4", "(2,)", "01234567"}, "y": {"<f4", "(2,)", "01234567"}})
	for name, text := range map[string]string{"table.csv": "a,b\n1,2\n", "numbers.csv": "1,2\n", "empty.csv": "", "broken.npz": "PK", "x.txt": "a", "full/a": "a"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ file, label, to, says string }{
		"arrays":         {"x.npz", "y", "new", ""},
		"a table":        {"table.csv", "b", "new", ""},
		"no labels":      {"x.npz", "z", "new", `no labels "z": it holds x, y`},
		"no column":      {"table.csv", "z", "new", `no labels "z": it holds a, b`},
		"no names":       {"numbers.csv", "", "new", "want the names of the columns in the first line"},
		"an empty table": {"empty.csv", "", "new", "no cases: want a line of names"},
		"damaged":        {"broken.npz", "", "new", "broken.npz"},
		"another format": {"x.txt", "", "new", "cannot be imported: want .npz"},
		"missing":        {"missing.parquet", "", "new", "no such file"},
		"a full folder":  {"x.npz", "y", "full", "which is not empty"},
	} {
		err := cases.Import{File: filepath.Join(dir, c.file), Label: c.label, To: filepath.Join(dir, c.to)}.Check()
		if (err == nil) != (c.says == "") || err != nil && (registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
