package cases_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// anyNumbers is the classifier of a framework that takes numbers of any precision.
func anyNumbers() validators.Interface {
	iface := classifier()
	iface.AnyNumbers = true
	return iface
}

// times are cases of three numbers, of which float32 holds the first two rows.
func times(t *testing.T) tensor.Tensor {
	t.Helper()
	return made(t, []float64{1, 2, 3, math.NaN(), 0.5, 1 << 24, 1<<24 + 1, 0, 0, 0.1, 0, 0}, 4, 3)
}

// written reads the tensors of the only file of a folder.
func written(t *testing.T, file toolchain.Input) map[string]tensor.Tensor {
	t.Helper()
	tensors, err := tensorfile.ReadFile(file.Path, tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return tensors
}

// Cases keep the numbers of the user, and engines get copies. The cases whose values that changes are known.
func TestConvertForEngines(t *testing.T) {
	t.Parallel()
	set := readSet(t, anyNumbers(), map[string]tensor.Tensor{"x": times(t), "label": made(t, []int64{0, 1, 0, 1}, 4)})
	if err := set.Convert(anyNumbers(), filepath.Join(t.TempDir(), "engines")); err != nil {
		t.Fatal(err)
	}
	given, converted := written(t, set.Files[0]), written(t, set.Engines()[0])
	if given["x"].DType != tensor.Float64 || converted["x"].DType != tensor.Float32 || !set.Converted() {
		t.Errorf("cases are %s and those of engines %s, want float64 and float32", given["x"].DType, converted["x"].DType)
	}
	if got := converted["x"].Float64(6); got != 1<<24 {
		t.Errorf("2^24+1 became %v, want the nearest float32", got)
	}
	if most := set.MostRounded(); !strings.HasPrefix(most, "column ") || !strings.HasSuffix(most, ` of input "x"`) {
		t.Errorf("%q loses most, want a column of x", most)
	}
	if diff := cmp.Diff(map[int]bool{2: true, 3: true}, set.Changed); diff != "" {
		t.Errorf("changed cases %s", diff)
	}
	if diff := cmp.Diff(given["label"], converted["label"]); diff != "" {
		t.Errorf("labels %s", diff)
	}
	if set.Engines()[0].Name != set.Files[0].Name {
		t.Errorf("the file of engines is %s, want the name of the shard", set.Engines()[0].Name)
	}
}

// Integers that float64 does not hold either count as changed.
func TestConvertIntegers(t *testing.T) {
	t.Parallel()
	set := readSet(t, anyNumbers(), map[string]tensor.Tensor{"x": made(t, []int64{1, 2, 3, 1 << 24, 0, 0, 1<<24 + 1, 0, 0, 1<<60 + 1, 0, 0}, 4, 3)})
	if err := set.Convert(anyNumbers(), filepath.Join(t.TempDir(), "engines")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int]bool{2: true, 3: true}, set.Changed); diff != "" {
		t.Errorf("changed cases %s", diff)
	}
}

// Cases of the types of engines are not copied, and a framework of one type refuses others.
func TestConvertNothing(t *testing.T) {
	t.Parallel()
	set := readSet(t, anyNumbers(), map[string]tensor.Tensor{"x": made(t, make([]float32, 6), 2, 3)})
	if err := set.Convert(anyNumbers(), filepath.Join(t.TempDir(), "engines")); err != nil || set.Converted() || set.Engines()[0].Path != set.Files[0].Path {
		t.Errorf("%v: float32 was converted", err)
	}
	if err := (&set).Check(classifier()); err != nil {
		t.Error(err)
	}
	double := readSet(t, anyNumbers(), map[string]tensor.Tensor{"x": times(t)})
	if err := double.Check(classifier()); registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), "dtype is float64, the model wants float32") {
		t.Errorf("%v, want %s", err, registry.CodeInvalid)
	}
}

// Calibration is compared with cases in the type of engines: the same row in another type is the same row.
func TestCalibrationOfAnotherType(t *testing.T) {
	t.Parallel()
	set := readSet(t, anyNumbers(), map[string]tensor.Tensor{"x": made(t, []float64{0.1, 0.2, 0.3}, 1, 3)})
	calibration := readSet(t, anyNumbers(), map[string]tensor.Tensor{"x": made(t, []float32{0.1, 0.2, 0.3}, 1, 3)})
	for _, s := range []*cases.Set{&set, &calibration} {
		if err := s.Convert(anyNumbers(), filepath.Join(t.TempDir(), "engines")); err != nil {
			t.Fatal(err)
		}
	}
	if err := cases.CheckApart(set, calibration, anyNumbers()); err == nil || !strings.Contains(err.Error(), "is also used for calibration") {
		t.Errorf("%v, want the case in both", err)
	}
}

// An import keeps the type for a framework that takes it. Else it converts, and warns of whole numbers that became others.
func TestImportKeepsNumbers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		iface validators.Interface
		file  string
		want  tensor.DType
		says  string
	}{
		"npz of any numbers": {anyNumbers(), "x.safetensors", tensor.Float64, `kept "x" as float64`},
		"csv of any numbers": {anyNumbers(), "x.csv", tensor.Float64, `kept "x" as float64`},
		"npz of one type":    {classifier(), "x.safetensors", tensor.Float32, `warning: 1 whole number of 12 values became others as float32, such as 16777217 to 16777216 in column 0 of input "x": `},
		"csv of one type":    {classifier(), "x.csv", tensor.Float32, `such as 16777217 to 16777216`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, to := filepath.Join(dir, c.file), filepath.Join(dir, "cases")
			if err := os.WriteFile(file, []byte("a,b,c\n1,2,3\nnan,0.5,16777216\n16777217,0,0\n0.1,0,0\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if filepath.Ext(c.file) == ".safetensors" {
				if err := cases.WriteShard(file, map[string]tensor.Tensor{"x": times(t)}); err != nil {
					t.Fatal(err)
				}
			}
			got, err := cases.Import{Inputs: c.iface, File: file, To: to}.Run()
			if err != nil {
				t.Fatal(err)
			}
			if notes := strings.Join(got.Notes, "\n"); !strings.Contains(notes, c.says) {
				t.Errorf("notes %s, want %s", notes, c.says)
			}
			tensors, err := tensorfile.ReadFile(filepath.Join(to, "cases-00000.safetensors"), tensorfile.Limits{})
			if err != nil || tensors["x"].DType != c.want {
				t.Errorf("the cases are %v (%v), want %s", tensors["x"].Info(), err, c.want)
			}
		})
	}
}

// readSet reads cases that lie in one file.
func readSet(t *testing.T, iface validators.Interface, tensors map[string]tensor.Tensor) cases.Set {
	t.Helper()
	dir := t.TempDir()
	if err := cases.WriteShard(filepath.Join(dir, "a.safetensors"), tensors); err != nil {
		t.Fatal(err)
	}
	folder, err := confined.New(dir, "the folder of the spec")
	if err != nil {
		t.Fatal(err)
	}
	set, err := cases.Read(folder, ".", toolchain.RoleCases, iface, "")
	if err != nil {
		t.Fatal(err)
	}
	return set
}
