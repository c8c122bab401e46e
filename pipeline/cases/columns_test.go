package cases_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// A person is a row of a table with features, and columns that a model does not know.
type person struct {
	Income float64 `parquet:"income"`
	Note   string  `parquet:"note"`
	Age    *int32  `parquet:"age,optional"`
	When   int64   `parquet:"when,timestamp"`
	Label  string  `parquet:"label"`
	City   string  `parquet:"city"`
	Index  int64   `parquet:"__index_level_0__"`
	Member bool    `parquet:"member"`
}

// scan is a row of a table with an image.
type scan struct {
	ID    int64       `parquet:"id"`
	Image [][]float64 `parquet:"image,list"`
	When  int64       `parquet:"when,timestamp"`
	Label int64       `parquet:"label"`
}

func parquetFile[T any](t *testing.T, rows []T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "t.parquet")
	if err := parquet.WriteFile(file, rows); err != nil {
		t.Fatal(err)
	}
	return file
}

// Columns of a Parquet file become inputs as those of a CSV file do, and lists become rows of a tensor.
func TestImportParquet(t *testing.T) {
	t.Parallel()
	batch, age := validators.Dim{Symbol: "batch"}, int32(30)
	named := func(names ...string) []validators.TensorInfo {
		return []validators.TensorInfo{{Name: "x", DType: tensor.Float32, Shape: []validators.Dim{batch, {Size: int64(len(names))}}, Names: names}}
	}
	column := func(name string, dtype tensor.DType, sizes ...int64) validators.TensorInfo {
		shape := []validators.Dim{batch}
		for _, size := range sizes {
			shape = append(shape, validators.Dim{Size: size})
		}
		return validators.TensorInfo{Name: name, DType: dtype, Shape: shape}
	}
	classes := func(names ...string) []validators.TensorInfo {
		return []validators.TensorInfo{{Name: "scores", DType: tensor.Float32,
			Shape: []validators.Dim{batch, {Size: 2}}, Kind: validators.KindScores, Names: names}}
	}
	people := parquetFile(t, []person{{1000, "x", &age, 5, "leave", "Zürich", 7, true}, {2000, "y", nil, 6, "stay", "Rome", 8, false}})
	scans := parquetFile(t, []scan{{1, [][]float64{{1, 2}, {3, 4}}, 5, 1}, {2, [][]float64{{5, 6}, {7, 8}}, 6, 0}})
	numbers := parquetFile(t, []struct {
		A int32   `parquet:"a"`
		B float32 `parquet:"b"`
		Y bool    `parquet:"y"`
	}{{1, 0.5, true}, {2, 1.5, false}})
	list := parquetFile(t, []struct {
		V []float32 `parquet:"v,list"`
	}{{[]float32{1, 2}}, {[]float32{3, 4}}})
	huge := parquetFile(t, []struct {
		A int64 `parquet:"a"`
		B int64 `parquet:"b"`
	}{{math.MaxInt64, 1}})
	for name, c := range map[string]struct {
		file    string
		inputs  []validators.TensorInfo
		outputs []validators.TensorInfo
		label   string
		want    string // error, or among the notes
		data    string // of the first input; "" if it is refused
		labels  string
	}{
		"features by name":           {people, named("age", "member"), classes("stay", "leave"), "", `left out "when"`, "30 1 NaN 0", "1 0"},
		"a feature without a column": {people, named("age", "height"), classes("stay", "leave"), "", `no column ["height"], which are features of the model`, "", ""},
		"a feature that is text":     {people, named("age", "city"), classes("stay", "leave"), "", `column "city" is text, and the model takes numbers`, "", ""},
		"a feature that is a time":   {people, named("when"), nil, "", `column "when": its type is not read`, "", ""},
		"an unknown class":           {people, named("age"), classes("stay", "go"), "", `case 0 is "leave", which is no class of the model: want one of ["stay" "go"]`, "", ""},
		"several inputs": {people, []validators.TensorInfo{column("city", validators.Text, 1), column("income", tensor.Float32, 1)},
			classes("stay", "leave"), "", `left out "note"`, "Zürich|Rome", "1 0"},
		"an image beside other columns": {scans, []validators.TensorInfo{column("image", tensor.Float32, 1, 2, 2)}, nil,
			"", `reshaped "image" from [2 2 2] to [2 1 2 2]`, "1 2 3 4 5 6 7 8", "1 0"},
		"a list for the only input":  {list, []validators.TensorInfo{column("x", tensor.Float64, 2)}, nil, "", `converted "x" from float32 to float64`, "1 2 3 4", ""},
		"all columns but the labels": {numbers, []validators.TensorInfo{column("x", tensor.Float32, 2)}, nil, "y", "", "1 0.5 2 1.5", "1 0"},
		"labels that are booleans":   {numbers, []validators.TensorInfo{column("x", tensor.Float32, 2)}, classes("False", "True"), "y", "", "1 0.5 2 1.5", "1 0"},
		"no such labels":             {numbers, []validators.TensorInfo{column("x", tensor.Float32, 2)}, nil, "z", `no labels "z"`, "", ""},
		"integers beyond floats":     {huge, []validators.TensorInfo{column("x", tensor.Float32, 2)}, nil, "", `column "a": 9223372036854775807 is beyond what a float holds exactly`, "", ""},
		"an integer as it is":        {huge, []validators.TensorInfo{column("a", tensor.Int64, 1), column("b", tensor.Int64, 1)}, nil, "", "", "9223372036854775807", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			iface := validators.Interface{V: validators.InterfaceVersion, Inputs: c.inputs, Outputs: c.outputs}
			to := filepath.Join(t.TempDir(), "cases")
			imported, err := cases.Import{Inputs: iface, File: c.file, Label: c.label, To: to}.Run()
			if c.data == "" {
				if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.file) {
					t.Errorf("error %v, want CodeInvalid with the file and %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if notes := strings.Join(imported.Notes, "\n"); !strings.Contains(notes, c.want) {
				t.Errorf("notes %q, want %q", notes, c.want)
			}
			shard, err := tensorfile.ReadFile(filepath.Join(to, "cases-00000.safetensors"), tensorfile.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			got := elements(t, shard[c.inputs[0].Name], c.inputs[0].DType)
			if labels := numbersOf(shard[imported.Labels]); got != c.data || labels != c.labels {
				t.Errorf("input %q and labels %q, want %q and %q", got, labels, c.data, c.labels)
			}
		})
	}
}

// elements are the numbers or texts of a tensor.
func elements(t *testing.T, of tensor.Tensor, dtype tensor.DType) string {
	t.Helper()
	if dtype == tensor.Int64 { // floats do not hold all of them
		return strconv.FormatInt(int64(binary.LittleEndian.Uint64(of.Data)), 10)
	}
	if dtype != validators.Text {
		return numbersOf(of)
	}
	texts, err := tensor.UnpackText(of)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(texts, "|")
}

// A file that is broken is refused, and leaves no cases.
func TestImportBrokenParquet(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(parquetFile(t, []scan{{1, [][]float64{{1, 2}, {3, 4}}, 5, 1}}))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"half":      {string(whole[:len(whole)/2]), "so it is no Parquet file"},
		"a table":   {"a,b,c\n1,2,3\n4,5,6\n", "so it is no Parquet file"},
		"no rows":   {emptyParquet(t), "no cases: want a row for each"},
		"encrypted": {string(whole[:len(whole)-4]) + "PARE", "it is encrypted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, to := filepath.Join(dir, "t.parquet"), filepath.Join(dir, "cases")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := cases.Import{Inputs: digits(), File: file, To: to}.Run()
			if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want CodeInvalid with %q", err, c.want)
			}
			if _, err := os.Stat(to); err == nil {
				t.Error("a folder of cases was written")
			}
		})
	}
}

func emptyParquet(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(parquetFile(t, []scan{}))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
