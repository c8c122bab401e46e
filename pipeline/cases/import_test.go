package cases_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// digits is the interface of a classifier of images.
func digits() validators.Interface {
	return validators.Interface{
		V: validators.InterfaceVersion,
		Inputs: []validators.TensorInfo{{Name: "image", DType: tensor.Float32,
			Shape: []validators.Dim{{Symbol: "N"}, {Size: 1}, {Size: 8}, {Size: 8}}}},
	}
}

// table is a CSV file of images in rows, with a label each.
func table(rows int, header bool) string {
	var b strings.Builder
	if header {
		for i := range 64 {
			b.WriteString("p" + strconv.Itoa(i) + ",")
		}
		b.WriteString("digit\n")
	}
	for row := range rows {
		for i := range 64 {
			b.WriteString(strconv.Itoa((i+row)%17) + ",")
		}
		b.WriteString(strconv.Itoa(row%10) + "\n")
	}
	return b.String()
}

func made[T tensor.Scalar](t *testing.T, values []T, shape ...int64) tensor.Tensor {
	t.Helper()
	out, err := tensor.New(values, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// importCase is a file of cases, and what becomes of it.
type importCase struct {
	file    string
	text    string                   // of a file of text
	tensors map[string]tensor.Tensor // of a safetensors file
	label   string
	count   int    // 0: refused
	labels  string // what the import calls them
	says    string // among the notes, or of the error
}

func TestImportCases(t *testing.T) {
	t.Parallel()
	type set = map[string]tensor.Tensor
	images := func(n int64) tensor.Tensor { return made(t, make([]float64, n*64), n, 1, 8, 8) }
	labels := func(values ...float64) tensor.Tensor { return made(t, values, int64(len(values)), 1) }
	for name, c := range map[string]importCase{
		"a table":                   {"x.csv", "\ufeff" + table(12, true), nil, "digit", 12, "digit", `reshaped "image" from [12 64] to [12 1 8 8]`},
		"a line that is too long":   {"x.csv", strings.ReplaceAll(table(2, true), ",digit", ""), nil, "", 0, "", "wrong number of fields"},
		"the labels are a feature":  {"x.csv", table(2, true), nil, "", 0, "", "shape is [2 65], the model wants"},
		"no names":                  {"x.csv", table(2, false), nil, "digit", 0, "", "x.csv:1: want the names of the columns"},
		"a word":                    {"x.csv", strings.Replace(table(2, true), "\n0,", "\nno,", 1), nil, "digit", 0, "", `x.csv:2: column "p0": "no" is not a number`},
		"semicolons":                {"x.csv", "a;b\n1;2\n", nil, "b", 0, "", "want commas"},
		"twice":                     {"x.csv", "a,a\n1,2\n", nil, "a", 0, "", `two columns are called "a"`},
		"only names":                {"x.csv", "a,b\n", nil, "b", 0, "", "no cases"},
		"an empty file":             {"x.csv", "", nil, "b", 0, "", "no cases"},
		"no such column":            {"x.csv", table(2, true), nil, "class", 0, "", `no labels "class": it holds image`},
		"numpy's types":             {"x.safetensors", "", set{"image": images(3), "y": labels(0, 1, 9)}, "y", 3, "y", `converted "image" from float64 to float32`},
		"another name":              {"x.safetensors", "", set{"X": images(1), "labels": labels(4)}, "", 1, "labels", `took "X" for the model's input "image"`},
		"more than is needed":       {"x.safetensors", "", set{"image": images(1), "weights": labels(4)}, "", 1, "", `left out "weights"`},
		"which one":                 {"x.safetensors", "", set{"a": images(1), "b": images(1)}, "", 0, "", `nothing for the model's input "image": except for labels it holds a, b`},
		"labels that are not whole": {"x.safetensors", "", set{"image": images(1), "y": labels(0.5)}, "y", 1, "y", "kept as numbers"},
		"labels that are NaN":       {"x.safetensors", "", set{"image": images(1), "y": labels(math.NaN())}, "y", 0, "", "want a finite number"},
		"a negative label":          {"x.safetensors", "", set{"image": images(1), "y": labels(-1)}, "y", 0, "", "label -1 at 0"},
		"a label too few":           {"x.safetensors", "", set{"image": images(2), "y": labels(1)}, "y", 0, "", "want 2 labels first"},
		"labels that are the input": {"x.safetensors", "", set{"image": images(2)}, "image", 0, "", "cannot be the labels"},
		"no rows":                   {"x.safetensors", "", set{"image": images(0)}, "", 0, "", "no cases"},
		"no safetensors":            {"x.safetensors", "what", nil, "", 0, "", "x.safetensors"},
		"parquet":                   {"x.parquet", "PAR1", nil, "y", 0, "", "too short for a Parquet file"},
		"a workbook":                {"x.xlsx", "PK", nil, "y", 0, "", "cannot be imported: want .npz, .csv, .parquet or .safetensors"},
		"missing":                   {"x.npz", "", nil, "y", 0, "", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.write(t, filepath.Join(dir, c.file))
			to := filepath.Join(dir, "cases")
			got, err := cases.Import{Inputs: digits(), File: filepath.Join(dir, c.file), Label: c.label, To: to}.Run()
			shard := filepath.Join(to, "cases-00000.safetensors")
			if c.count == 0 {
				if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %v, want CodeInvalid and %q", err, c.says)
				}
				if _, err := os.Stat(shard); err == nil {
					t.Error("cases were written")
				}
				return
			}
			if notes := strings.Join(got.Notes, "\n"); err != nil || got.Count != c.count || got.Labels != c.labels || !strings.Contains(notes, c.says) {
				t.Fatalf("got %+v, error %v; want %d cases with labels %q, and %q said", got, err, c.count, c.labels, c.says)
			}
			written, err := tensorfile.ReadFile(shard, tensorfile.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if image := written["image"]; image.DType != tensor.Float32 || len(image.Shape) != 4 || image.Shape[0] != int64(c.count) {
				t.Errorf("the image is %v, want float32 of %d cases", image.Info(), c.count)
			}
			if _, err := (cases.Import{Inputs: digits(), File: filepath.Join(dir, c.file), Label: c.label, To: to}).Run(); err == nil ||
				!strings.Contains(err.Error(), "which is not empty: it holds cases-00000.safetensors") {
				t.Errorf("a second import: error %v, want that the folder is not empty", err)
			}
		})
	}
}

// write writes the file, unless it has nothing in it and should be missing.
func (c importCase) write(t *testing.T, file string) {
	t.Helper()
	if c.file == "x.npz" {
		return
	}
	var b strings.Builder
	b.WriteString(c.text)
	if c.tensors != nil {
		if err := tensorfile.Write(&b, c.tensors, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Open dimensions have the sizes of the cases as usual ones, and larger ones than by default where the cases have them.
func TestImportedSizes(t *testing.T) {
	t.Parallel()
	for length, want := range map[int64]validators.DimRange{
		24: {Min: 1, Opt: 24, Max: 64}, 1: validators.DefaultDimRange(), 100: {Min: 1, Opt: 100, Max: 100},
	} {
		t.Run(strconv.FormatInt(length, 10), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "cases.safetensors")
			ids := made(t, make([]int64, 3*length), 3, length)
			if err := cases.WriteShard(file, map[string]tensor.Tensor{"ids": ids}); err != nil {
				t.Fatal(err)
			}
			iface := validators.Interface{V: validators.InterfaceVersion, Inputs: []validators.TensorInfo{{Name: "ids", DType: tensor.Int64,
				Shape: []validators.Dim{{Symbol: "batch"}, {Symbol: "seq"}}}}}
			got, err := cases.Import{Inputs: iface, File: file, To: filepath.Join(dir, "cases")}.Run()
			if err != nil || got.Interface.Dims["seq"] != want || got.Interface.Dims["batch"] != validators.DefaultDimRange() {
				t.Errorf("sizes %v (%v), want %v of seq and the default of batch", got.Interface.Dims, err, want)
			}
		})
	}
}

// An array with the cases in front of all dimensions of an input is taken as it is, also where the batch is not the first
// of them: each case keeps its sequence.
func TestImportWholeInputs(t *testing.T) {
	t.Parallel()
	type sizes = map[string]int64
	for name, c := range map[string]struct {
		rows   []int64 // of the file
		shape  []validators.Dim
		dims   map[string]validators.DimRange // as a spec says them
		want   []int64
		usual  sizes
		length int64 // the largest
	}{
		"sequences first": {[]int64{10, 17, 1, 6}, []validators.Dim{sym("seq"), sym("batch"), size(6)}, nil,
			[]int64{10, 17, 1, 6}, sizes{"seq": 17, "batch": 1}, 64},
		"longer ones": {[]int64{10, 100, 1, 6}, []validators.Dim{sym("seq"), sym("batch"), size(6)}, nil,
			[]int64{10, 100, 1, 6}, sizes{"seq": 100, "batch": 1}, 100},
		"as a spec says": {[]int64{10, 17, 1, 6}, []validators.Dim{sym("seq"), sym("batch"), size(6)},
			map[string]validators.DimRange{"seq": {Min: 1, Opt: 9, Max: 20}, "batch": {Min: 1, Opt: 1, Max: 4}},
			[]int64{10, 17, 1, 6}, sizes{"seq": 9, "batch": 1}, 20},
		"batches of one": {[]int64{10, 1, 17, 6}, []validators.Dim{sym("batch"), sym("seq"), size(6)}, nil,
			[]int64{10, 1, 17, 6}, sizes{"seq": 17, "batch": 1}, 64},
		"rows of another shape": {[]int64{10, 3, 2}, []validators.Dim{sym("seq"), size(6)}, nil,
			[]int64{10, 6}, sizes{"seq": 1}, 64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, n := t.TempDir(), int64(1)
			for _, d := range c.rows {
				n *= d
			}
			file := filepath.Join(dir, "x.safetensors")
			fileOf(t, file, map[string]tensor.Tensor{"x": made(t, make([]float32, n), c.rows...)})
			iface := validators.Interface{V: validators.InterfaceVersion, Dims: c.dims,
				Inputs: []validators.TensorInfo{{Name: "x", DType: tensor.Float32, Shape: c.shape}}}
			got, err := cases.Import{Inputs: iface, File: file, To: filepath.Join(dir, "cases")}.Run()
			if err != nil {
				t.Fatal(err)
			}
			written, err := tensorfile.ReadFile(filepath.Join(dir, "cases", "cases-00000.safetensors"), tensorfile.Limits{})
			if err != nil || !slices.Equal(written["x"].Shape, c.want) {
				t.Errorf("cases of %v became %v (%v), want %v", c.rows, written["x"].Shape, err, c.want)
			}
			for symbol, usual := range c.usual {
				if dim := got.Interface.Dims[symbol]; dim.Opt != usual {
					t.Errorf("%s is %v, want %d as the usual size", symbol, dim, usual)
				}
			}
			if largest := got.Interface.Dims["seq"].Max; largest != c.length {
				t.Errorf("seq goes to %d, want %d", largest, c.length)
			}
		})
	}
}

// What labels are says what output they belong to: columns of real numbers, classes, or two of them.
func TestImportedLabelFacts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		labels []float64
		each   int64
		want   cases.LabelFacts
	}{
		"classes":      {[]float64{0, 2, 1}, 1, cases.LabelFacts{Each: 1, Largest: 2}},
		"one class":    {[]float64{1, 1, 1}, 1, cases.LabelFacts{Each: 1, Largest: 1}},
		"two classes":  {[]float64{0, 1, 1}, 1, cases.LabelFacts{Each: 1, Largest: 1, Binary: true}},
		"real numbers": {[]float64{0.5, 2, 1, 0, 0, 1}, 2, cases.LabelFacts{Each: 2, Largest: 2, Real: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			count := int64(len(c.labels)) / c.each
			file := importCase{file: "x.safetensors", tensors: map[string]tensor.Tensor{
				"image": made(t, make([]float32, count*64), count, 1, 8, 8), "y": made(t, c.labels, count, c.each)}}
			file.write(t, filepath.Join(dir, file.file))
			got, err := cases.Import{Inputs: digits(), File: filepath.Join(dir, file.file), Label: "y", To: filepath.Join(dir, "cases")}.Run()
			if err != nil || got.Facts != c.want {
				t.Errorf("%+v, error %v; want %+v", got.Facts, err, c.want)
			}
		})
	}
}
