package cases_test

import (
	"archive/zip"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// interfaceOf is a model whose inputs are x and, if it has a shape, z. The symbol n stands for 1 to 4, and m for 2 to 4.
func interfaceOf(dtype tensor.DType, x, z []validators.Dim) validators.Interface {
	i := validators.Interface{
		Inputs: []validators.TensorInfo{{Name: "x", DType: dtype, Shape: x}},
		Dims:   map[string]validators.DimRange{"n": {Min: 1, Opt: 3, Max: 4}, "m": {Min: 2, Opt: 3, Max: 4}},
	}
	if z != nil {
		i.Inputs = append(i.Inputs, validators.TensorInfo{Name: "z", DType: dtype, Shape: z})
	}
	return i
}

func sym(s string) validators.Dim { return validators.Dim{Symbol: s} }

func size(n int64) validators.Dim { return validators.Dim{Size: n} }

// fileOf writes tensors into a safetensors file.
func fileOf(t *testing.T, path string, tensors map[string]tensor.Tensor) {
	t.Helper()
	if err := cases.WriteShard(path, tensors); err != nil {
		t.Fatal(err)
	}
}

// readFolder reads the cases of a folder.
func readFolder(t *testing.T, dir string, iface validators.Interface) (cases.Set, error) {
	t.Helper()
	folder, err := confined.New(dir, "the folder of the spec")
	if err != nil {
		t.Fatal(err)
	}
	return cases.Read(folder, ".", toolchain.RoleCases, iface, t.TempDir())
}

// A tensor of cases has the model's dimensions, and one in front that counts the cases. The batch of the model can be that one.
func TestReadFits(t *testing.T) {
	t.Parallel()
	type dims = []validators.Dim
	floats := func(shape ...int64) tensor.Tensor {
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		return made(t, make([]float32, n), shape...)
	}
	for name, c := range map[string]struct {
		x, z  dims
		given map[string]tensor.Tensor
		count int
		says  string // empty: it is read
	}{
		"the batch is the cases":    {dims{sym("n"), size(3)}, nil, map[string]tensor.Tensor{"x": floats(5, 3)}, 5, ""},
		"a dimension in front":      {dims{sym("n"), size(3)}, nil, map[string]tensor.Tensor{"x": floats(2, 4, 3)}, 2, ""},
		"a batch that is too large": {dims{sym("n"), size(3)}, nil, map[string]tensor.Tensor{"x": floats(2, 5, 3)}, 0, "shape is [2 5 3], the model wants [n 3]: dimension 0 is 5, and n is from 1 to 4 | if the model takes such cases, write into the spec: shapes: {n: [1, 5, 5]}"},
		"a size that is too small":  {dims{sym("n"), sym("m")}, nil, map[string]tensor.Tensor{"x": floats(4, 1)}, 0, "the model wants [n m]: dimension 1 is 1, and m is from 2 to 4 | if the model takes such cases, write into the spec: shapes: {m: [1, 3, 4]}"},
		"a batch of at least two": {dims{sym("m"), size(3)}, nil, map[string]tensor.Tensor{"x": floats(5, 3)}, 0,
			"the first dimension of the model's input is m, so each case is a whole batch: the tensor needs one more dimension in front"},
		"such a batch in front":          {dims{sym("m"), size(3)}, nil, map[string]tensor.Tensor{"x": floats(2, 2, 3)}, 2, ""},
		"another width":                  {dims{sym("n"), size(3)}, nil, map[string]tensor.Tensor{"x": floats(5, 4)}, 0, "shape is [5 4], the model wants [n 3]"},
		"two dimensions too many":        {dims{sym("n"), size(3)}, nil, map[string]tensor.Tensor{"x": floats(1, 1, 1, 3)}, 0, "with a leading case dimension"},
		"a dimension too few":            {dims{sym("n"), size(3)}, nil, map[string]tensor.Tensor{"x": floats(3)}, 0, "with a leading case dimension"},
		"a scalar of each case":          {dims{}, nil, map[string]tensor.Tensor{"x": floats(4)}, 4, ""},
		"a scalar":                       {dims{}, nil, map[string]tensor.Tensor{"x": floats()}, 0, "no case dimension"},
		"another type":                   {dims{sym("n")}, nil, map[string]tensor.Tensor{"x": made(t, []float64{1}, 1)}, 0, "dtype is float64, the model wants float32"},
		"no case":                        {dims{sym("n")}, nil, map[string]tensor.Tensor{"x": floats(0)}, 0, "no cases"},
		"one case":                       {dims{sym("n")}, nil, map[string]tensor.Tensor{"x": floats(1)}, 1, ""},
		"two inputs":                     {dims{sym("n")}, dims{sym("n")}, map[string]tensor.Tensor{"x": floats(2), "z": floats(2)}, 2, ""},
		"two inputs, one of fewer cases": {dims{sym("n")}, dims{sym("n")}, map[string]tensor.Tensor{"x": floats(2), "z": floats(1)}, 0, `tensor "z" has 1 cases, another has 2`},
		"two inputs, one of no cases":    {dims{sym("n")}, dims{sym("n")}, map[string]tensor.Tensor{"x": floats(0), "z": floats(2)}, 0, `tensor "z" has 2 cases, another has 0`},
		"two inputs, one is missing":     {dims{sym("n")}, dims{sym("n")}, map[string]tensor.Tensor{"x": floats(2), "y": floats(2)}, 0, `no tensor for the model's input "z": it holds x, y`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fileOf(t, filepath.Join(dir, "a.safetensors"), c.given)
			set, err := readFolder(t, dir, interfaceOf(tensor.Float32, c.x, c.z))
			if c.says == "" && (err != nil || set.Record.Count != c.count) {
				t.Errorf("%d cases, error %v; want %d", set.Record.Count, err, c.count)
			}
			if c.says != "" && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error()+" | "+strings.Join(registry.Hints(err), ""), c.says)) {
				t.Errorf("error %v (hints %q), want CodeInvalid with %q", err, registry.Hints(err), c.says)
			}
		})
	}
}

// Shards are read in the order of their names, whatever their format, and named by their place.
func TestReadFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fileOf(t, filepath.Join(dir, "b.safetensors"), map[string]tensor.Tensor{"x": made(t, []float32{1, 2, float32(math.NaN())}, 3)})
	copyFile(t, "../../validators/tensor/tensorfile/testdata/stored.npz", filepath.Join(dir, "a.npz"))
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("no cases"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readFolder(t, dir, interfaceOf(tensor.Float32, []validators.Dim{sym("n")}, nil)); !registry.HasCode(err, registry.CodeInvalid) ||
		!strings.Contains(err.Error(), `a.npz: no tensor for the model's input "x"`) {
		t.Errorf("an archive without the input: error %v, want CodeInvalid that names the user's file", err)
	}
	i := interfaceOf(tensor.Float32, []validators.Dim{sym("n"), size(3)}, nil)
	i.Inputs[0].Name = "a"
	if err := os.Remove(filepath.Join(dir, "b.safetensors")); err != nil {
		t.Fatal(err)
	}
	fileOf(t, filepath.Join(dir, "b.safetensors"), map[string]tensor.Tensor{"a": made(t, []float32{1, 2, float32(math.NaN())}, 1, 3)})
	set, err := readFolder(t, dir, i)
	if err != nil {
		t.Fatal(err)
	}
	want := []artifact.Shard{{File: "cases-00000.safetensors", First: 0, Count: 2}, {File: "cases-00001.safetensors", First: 2, Count: 1}}
	if !slices.Equal(set.Record.Shards, want) || set.Record.Count != 3 || set.Record.Origin != artifact.OriginRecorded {
		t.Errorf("record %+v, want three cases in %+v", set.Record, want)
	}
	if len(set.Warnings) != 1 || !strings.Contains(set.Warnings[0], `b.safetensors: tensor "a": NaN in 1 of 1 cases, the first is case 2`) {
		t.Errorf("warnings %q, want one about case 2 of b.safetensors", set.Warnings)
	}
	failed := func(shard string) error {
		return registry.Errorf(registry.CodeInvalid, "%w", &toolchain.Failure{Subject: toolchain.Subject{Shard: shard}, Err: errors.New("no such index")})
	}
	hint := registry.Hints(set.NamedIn(failed("cases-00000.safetensors")))
	if len(hint) != 1 || !strings.Contains(hint[0], "cases-00000.safetensors was read from") || !strings.Contains(hint[0], "a.npz") {
		t.Errorf("hint %q, want that the shard was read from a.npz", hint)
	}
	for _, err := range []error{registry.Errorf(registry.CodeInvalid, "in cases-00000.safetensors"), failed("")} {
		if hint := registry.Hints(set.NamedIn(err)); len(hint) != 0 {
			t.Errorf("the error %v about no shard has the hint %q", err, hint)
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A folder without cases says what is missing, and how to make it of a table.
func TestReadFolderRefuses(t *testing.T) {
	t.Parallel()
	iface := interfaceOf(tensor.Float32, []validators.Dim{sym("n")}, nil)
	for name, c := range map[string]struct {
		file, text string
		code       registry.Code
		says, hint string
	}{
		"no file":         {"", "", registry.CodeInvalid, "no cases: want .safetensors or .npz files", ""},
		"another file":    {"readme.txt", "x", registry.CodeInvalid, "no cases: want .safetensors or .npz files", ""},
		"a table":         {"cases.csv", "x", registry.CodeInvalid, "no cases: want .safetensors or .npz files", "cases.csv"},
		"a Parquet file":  {"cases.PARQUET", "x", registry.CodeInvalid, "no cases: want .safetensors or .npz files", "cases.PARQUET"},
		"no archive":      {"a.npz", "x", registry.CodeInvalid, "a.npz: npz: not a readable zip archive", ""},
		"no safetensors":  {"a.safetensors", "x", registry.CodeInvalid, "a.safetensors: safetensors:", ""},
		"a pickle inside": {"a.npz", pickled(t), registry.CodeUnsafe, "the archive holds a pickle", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if c.file != "" {
				if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := readFolder(t, dir, iface)
			if !registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want %s with %q", err, c.code, c.says)
			}
			hints := strings.Join(registry.Hints(err), "\n")
			if c.hint == "" && hints != "" || !strings.Contains(hints, c.hint) {
				t.Errorf("hints %q, want %q", hints, c.hint)
			}
		})
	}
}

// Generated cases have the shape of the model, with one dimension in front unless the batch is that.
func TestGenerate(t *testing.T) {
	t.Parallel()
	type dims = []validators.Dim
	for name, c := range map[string]struct {
		dtype tensor.DType
		shape dims
		want  []int64
		says  string // empty: they are made
	}{
		"the batch is the cases":  {tensor.Float32, dims{sym("n"), size(5)}, []int64{2, 5}, ""},
		"a batch of at least two": {tensor.Float64, dims{sym("m"), size(5)}, []int64{2, 3, 5}, ""},
		"the optimum":             {tensor.Int64, dims{size(1), sym("n")}, []int64{2, 3}, ""},
		"int32":                   {tensor.Int32, dims{size(4)}, []int64{2, 4}, ""},
		"int8":                    {tensor.Int8, dims{size(4)}, []int64{2, 4}, ""},
		"uint8":                   {tensor.Uint8, dims{size(4)}, []int64{2, 4}, ""},
		"bool":                    {tensor.Bool, dims{}, []int64{2}, ""},
		"float16":                 {tensor.Float16, dims{size(4)}, []int64{2, 4}, ""},
		"int16":                   {tensor.Int16, dims{size(4)}, []int64{2, 4}, ""},
		"uint16":                  {tensor.Uint16, dims{size(4)}, []int64{2, 4}, ""},
		"uint32":                  {tensor.Uint32, dims{size(4)}, []int64{2, 4}, ""},
		"bfloat16":                {tensor.BFloat16, dims{size(4)}, nil, "no cases can be generated for dtype bfloat16"},
		"too many":                {tensor.Bool, dims{size(1 << 25), size(2)}, nil, "is too large to generate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			iface, dir := interfaceOf(c.dtype, c.shape, nil), t.TempDir()
			set, err := cases.Generate(2, 1, iface, nil, dir)
			if c.says != "" {
				if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %v, want CodeInvalid with %q", err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if set.Record.Count != 2 || set.Record.Origin != artifact.OriginGenerated || len(set.Files) != 1 {
				t.Fatalf("record %+v with %d files, want two generated cases in one", set.Record, len(set.Files))
			}
			all, err := tensorfile.ReadFile(set.Files[0].Path, tensorfile.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			x := all["x"]
			if x.DType != c.dtype || !slices.Equal(x.Shape, c.want) {
				t.Errorf("generated %s %v, want %s %v", x.DType, x.Shape, c.dtype, c.want)
			}
			for _, v := range x.Float64s() {
				if x.DType.Class() != tensor.ClassFloat && v != 0 && v != 1 {
					t.Errorf("element %v, want 0 or 1", v)
				}
			}
			if _, err := readFolder(t, dir, iface); err != nil {
				t.Errorf("the cases do not fit the model that they were made for: %v", err)
			}
		})
	}
}

// Labels are classes of the output that is scored.
func TestLabelsOfOutputs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		classes validators.Dim
		tensor  string
		labels  []int64
		named   string
		want    string
		says    string
	}{
		"the last class":             {size(2), "label", []int64{1}, "label", "label", ""},
		"a class too many":           {size(2), "label", []int64{2}, "label", "", "label 2 at 0: want the number of a class of output y, from 0 to 1"},
		"a number that is not known": {sym("n"), "label", []int64{9}, "label", "label", ""},
		"a negative class":           {sym("n"), "label", []int64{-1}, "label", "", "label -1 at 0"},
		"labels":                     {size(2), "labels", []int64{1}, "", "labels", ""},
		"another name":               {size(2), "classes", []int64{1}, "", "", ""},
		"another name, as named":     {size(2), "classes", []int64{1}, "classes", "classes", ""},
		"no such tensor":             {size(2), "label", []int64{1}, "labels", "", `no tensor "labels", which cases.labels names`},
		"an input":                   {size(2), "label", []int64{1}, "x", "", `"x" is an input of the model`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, iface := t.TempDir(), interfaceOf(tensor.Float32, []validators.Dim{sym("n")}, nil)
			iface.Outputs = []validators.TensorInfo{{Name: "y", DType: tensor.Float32, Shape: []validators.Dim{sym("n"), c.classes}}}
			fileOf(t, filepath.Join(dir, "a.safetensors"), map[string]tensor.Tensor{"x": made(t, []float32{1}, 1), c.tensor: made(t, c.labels, 1)})
			got, err := labelsOf(t, dir, toolchain.RoleCases, c.named, iface)
			if c.says == "" && (err != nil || got != c.want) {
				t.Errorf("labels %q, error %v; want %q", got, err, c.want)
			}
			if c.says != "" && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want CodeInvalid with %q", err, c.says)
			}
		})
	}
}

// Labels of places are classes of the dimension that the places leave, and a negative one counts for nothing.
func TestLabelsOfPlaces(t *testing.T) {
	t.Parallel()
	n := sym("n")
	for name, c := range map[string]struct {
		output []validators.Dim
		kind   validators.Kind
		metric string
		shape  []int64
		labels []int64
		says   string
	}{
		"classes in front":         {[]validators.Dim{n, size(3), size(2), size(2)}, validators.KindMask, "miou", []int64{1, 2, 2}, []int64{0, 2, -1, 1}, ""},
		"in front, one too many":   {[]validators.Dim{n, size(3), size(2), size(2)}, validators.KindMask, "miou", []int64{1, 2, 2}, []int64{0, 3, 1, 1}, "from 0 to 2, or a negative"},
		"classes last":             {[]validators.Dim{n, size(2), size(3)}, validators.KindTokens, "top1", []int64{1, 2}, []int64{2, -100}, ""},
		"last, one too many":       {[]validators.Dim{n, size(2), size(3)}, validators.KindTokens, "top1", []int64{1, 2}, []int64{3, 0}, "from 0 to 2"},
		"of open sizes":            {[]validators.Dim{n, size(3), sym("h"), sym("w")}, validators.KindMask, "top1", []int64{1, 2, 2}, []int64{0, 2, -1, 1}, ""},
		"no answer that counts":    {[]validators.Dim{n, size(2), size(3)}, validators.KindTokens, "top1", []int64{2, 2}, []int64{0, -1, -1, -2}, "all labels of case 1 are negative"},
		"numbers of tokens":        {[]validators.Dim{n, size(2)}, validators.KindClass, "top1", []int64{1, 2}, []int64{0, -1}, "label -1 at 1"},
		"whole tokens":             {[]validators.Dim{n, size(2)}, validators.KindTokens, "top1", []int64{1, 2}, []int64{0, -1}, "label -1 at 1"},
		"numbers of pixels":        {[]validators.Dim{n, size(2)}, validators.KindClass, "miou", []int64{1, 2}, []int64{0, -1}, ""},
		"one label of each case":   {[]validators.Dim{n, size(3)}, validators.KindScores, "top1", []int64{2, 1}, []int64{0, -1}, "label -1 at 1"},
		"numbers of a plane, void": {[]validators.Dim{n, size(1), size(2)}, validators.KindMask, "miou", []int64{1, 2}, []int64{7, -1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dtype := tensor.Float32
			if c.kind == validators.KindClass || name == "whole tokens" || name == "numbers of a plane, void" {
				dtype = tensor.Int64
			}
			dir, iface := t.TempDir(), interfaceOf(tensor.Float32, []validators.Dim{n}, nil)
			iface.V = validators.InterfaceVersion
			iface.Outputs = []validators.TensorInfo{{Name: "y", DType: dtype, Shape: c.output, Kind: c.kind}}
			cases := c.shape[0]
			fileOf(t, filepath.Join(dir, "a.safetensors"), map[string]tensor.Tensor{"x": made(t, make([]float32, cases), cases), "label": made(t, c.labels, c.shape...)})
			set, err := readFolder(t, dir, iface)
			if err != nil {
				t.Fatal(err)
			}
			err = set.FindLabels("label", iface, &validators.AccuracyLimit{Metric: c.metric, Drop: &validators.AtMost{Max: 0.1}})
			if (c.says == "") != (err == nil) || err != nil && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want CodeInvalid with %q", err, c.says)
			}
		})
	}
}

// Numbers that a type does not hold are refused, and the last ones that it holds are not.
func TestImportConverts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dtype tensor.DType
		value float64
		ok    bool
	}{
		"int8 least": {tensor.Int8, -128, true}, "int8 below": {tensor.Int8, -129, false},
		"int8 most": {tensor.Int8, 127, true}, "int8 above": {tensor.Int8, 128, false},
		"uint8 least": {tensor.Uint8, 0, true}, "uint8 below": {tensor.Uint8, -1, false},
		"uint8 most": {tensor.Uint8, 255, true}, "uint8 above": {tensor.Uint8, 256, false},
		"int16 most": {tensor.Int16, 32767, true}, "int16 above": {tensor.Int16, 32768, false},
		"uint16 most": {tensor.Uint16, 65535, true}, "uint16 above": {tensor.Uint16, 65536, false}, "uint32 below": {tensor.Uint32, -1, false},
		"uint32 most": {tensor.Uint32, math.MaxUint32, true}, "uint32 above": {tensor.Uint32, math.MaxUint32 + 1, false},
		"float16 most": {tensor.Float16, 65504, true}, "float16 above": {tensor.Float16, 65520, false}, "float16 below": {tensor.Float16, -65520, false},
		"infinity in float16": {tensor.Float16, math.Inf(1), true}, "NaN in float16": {tensor.Float16, math.NaN(), true},
		"int32 least": {tensor.Int32, math.MinInt32, true}, "int32 below": {tensor.Int32, math.MinInt32 - 1, false},
		"int64 most": {tensor.Int64, 1 << 53, true}, "int64 above": {tensor.Int64, 1<<53 + 2, false},
		"a fraction in uint8": {tensor.Uint8, 0.5, false}, "a fraction in uint16": {tensor.Uint16, 0.5, false}, "a fraction in uint32": {tensor.Uint32, 0.5, false},
		"a fraction in int8": {tensor.Int8, 0.5, false}, "a fraction in int16": {tensor.Int16, 0.5, false}, "a fraction in int32": {tensor.Int32, 0.5, false},
		"uint64": {tensor.Uint64, 1, false}, "uint16 below": {tensor.Uint16, -1, false},
		"a fraction": {tensor.Int64, 0.5, false}, "NaN in integers": {tensor.Int64, math.NaN(), false},
		"a fraction in float32": {tensor.Float32, 0.1, true}, "infinity in float32": {tensor.Float32, math.Inf(1), true},
		"NaN in float32": {tensor.Float32, math.NaN(), true}, "float64": {tensor.Float64, 0.1, true}, "bool": {tensor.Bool, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "x.safetensors")
			fileOf(t, file, map[string]tensor.Tensor{"x": made(t, []float64{c.value}, 1, 1)})
			to := filepath.Join(dir, "cases")
			iface := interfaceOf(c.dtype, []validators.Dim{sym("n"), size(1)}, nil)
			iface.V, iface.Outputs = validators.InterfaceVersion, []validators.TensorInfo{{Name: "y", DType: tensor.Float32}}
			_, err := cases.Import{Inputs: iface, File: file, Label: "", To: to}.Run()
			if !c.ok {
				if !registry.HasCode(err, registry.CodeInvalid) {
					t.Errorf("error %v, want CodeInvalid", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			all, err := tensorfile.ReadFile(filepath.Join(to, "cases-00000.safetensors"), tensorfile.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			want := c.value
			if c.dtype == tensor.Float32 {
				want = float64(float32(c.value))
			}
			if got := all["x"].Float64(0); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("imported %v, want %v", got, want)
			}
		})
	}
}

// Unusual values are counted by cases, with the first of each kind.
func TestUnusual(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(-1)
	for name, c := range map[string]struct {
		values  []float64
		want    string
		onlyNaN bool
	}{
		"nothing":            {[]float64{1, 2}, "", false},
		"no cases":           {nil, "", false},
		"a NaN":              {[]float64{1, nan}, "NaN in 1 of 2 cases, the first is case 11", false},
		"only NaN":           {[]float64{nan, nan}, "NaN in 2 of 2 cases, the first is case 10", true},
		"an infinity":        {[]float64{inf, 1, inf}, "infinity in 2 of 3 cases, the first is case 10", false},
		"a NaN and infinity": {[]float64{1, inf, nan}, "NaN in 1 of 3 cases, the first is case 12; infinity in 1 of 3 cases, the first is case 11", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a.safetensors")
			fileOf(t, path, map[string]tensor.Tensor{"x": made(t, c.values, int64(len(c.values))), "scalar": made(t, []float64{nan})})
			var found cases.Unusual
			for _, tensor := range []string{"x", "scalar", "absent"} {
				if err := found.AddFile(path, tensor, 10); err != nil {
					t.Fatal(err)
				}
			}
			if got := found.String(); got != c.want || found.Cases() != len(c.values) || found.OnlyNaN() != c.onlyNaN {
				t.Errorf("found %q in %d cases, only NaN %v; want %q in %d, %v", got, found.Cases(), found.OnlyNaN(), c.want, len(c.values), c.onlyNaN)
			}
		})
	}
	if err := new(cases.Unusual).AddFile(filepath.Join(t.TempDir(), "a.safetensors"), "x", 0); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("no file: error %v, want CodeInvalid", err)
	}
}

// pickled is an archive that holds a pickle.
func pickled(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	w := zip.NewWriter(&b)
	if _, err := w.Create("archive/data.pkl"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// imported reads a file of cases for a model, and gives the tensors that were written.
func imported(t *testing.T, iface validators.Interface, name, text, label string) (map[string]tensor.Tensor, cases.Imported, error) {
	t.Helper()
	dir := t.TempDir()
	file, to := filepath.Join(dir, name), filepath.Join(dir, "cases")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := cases.Import{Inputs: iface, File: file, Label: label, To: to}.Run()
	if err != nil {
		if _, there := os.Stat(to); there == nil {
			t.Errorf("the folder %s stays after an error", to)
		}
		return nil, got, err
	}
	all, err := tensorfile.ReadFile(filepath.Join(to, "cases-00000.safetensors"), tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return all, got, nil
}

// Columns of a table are one input or several, and the labels stand anywhere.
func TestImportTables(t *testing.T) {
	t.Parallel()
	two, three := []validators.Dim{sym("n"), size(2)}, []validators.Dim{sym("n"), size(3)}
	for name, c := range map[string]struct {
		x, z   []validators.Dim
		text   string
		label  string
		want   map[string][]float64
		labels string
	}{
		"labels first":           {two, nil, "label,a,b\n1,2,3\n0,5,6\n", "", map[string][]float64{"x": {2, 3, 5, 6}, "label": {1, 0}}, "label"},
		"labels between":         {two, nil, "a,class,b\n2,1,3\n5,0,6\n", "class", map[string][]float64{"x": {2, 3, 5, 6}, "class": {1, 0}}, "class"},
		"no labels":              {three, nil, "a,b,c\n1,2,3\n", "", map[string][]float64{"x": {1, 2, 3}}, ""},
		"a number for each case": {[]validators.Dim{}, nil, "x,label\n2,1\n5,0\n", "", map[string][]float64{"x": {2, 5}, "label": {1, 0}}, "label"},
		"a column for each input": {[]validators.Dim{sym("n"), size(1)}, []validators.Dim{sym("n")},
			"z,labels,x\n7,1,2\n8,0,5\n", "", map[string][]float64{"x": {2, 5}, "z": {7, 8}, "labels": {1, 0}}, "labels"},
		"spaces around":             {two, nil, " label , a , b\n 1 , 2 , 3 \n", "", map[string][]float64{"x": {2, 3}, "label": {1}}, "label"},
		"a column that is no label": {three, nil, "target,a,b\n1,2,3\n", "", map[string][]float64{"x": {1, 2, 3}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			iface := interfaceOf(tensor.Float32, c.x, c.z)
			iface.V, iface.Outputs = validators.InterfaceVersion, []validators.TensorInfo{{Name: "y", DType: tensor.Float32}}
			all, got, err := imported(t, iface, "x.csv", c.text, c.label)
			if err != nil {
				t.Fatal(err)
			}
			if got.Labels != c.labels || len(all) != len(c.want) {
				t.Errorf("labels %q and %d tensors, want %q and %d", got.Labels, len(all), c.labels, len(c.want))
			}
			for name, want := range c.want {
				if values := all[name].Float64s(); !slices.Equal(values, want) {
					t.Errorf("%s is %v, want %v", name, values, want)
				}
			}
		})
	}
}

// Archives that cannot be read are refused, and leave no folder.
func TestImportRefusesArchives(t *testing.T) {
	t.Parallel()
	iface := interfaceOf(tensor.Float32, []validators.Dim{sym("n")}, nil)
	iface.V, iface.Outputs = validators.InterfaceVersion, []validators.TensorInfo{{Name: "y", DType: tensor.Float32}}
	for name, c := range map[string]struct {
		text string
		code registry.Code
		says string
	}{
		"no archive":      {"x", registry.CodeInvalid, "x.npz: npz: not a readable zip archive"},
		"a pickle inside": {pickled(t), registry.CodeUnsafe, "the archive holds a pickle"},
	} {
		if _, _, err := imported(t, iface, "x.npz", c.text, ""); !registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %s with %q", name, err, c.code, c.says)
		}
	}
}
