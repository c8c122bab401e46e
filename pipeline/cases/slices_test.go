package cases_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// sliced is a limit on each slice of the cases, by the tensor "group". least is the accuracy of a slice; 0: none is asked.
func sliced(least float64) validators.Limits {
	l := validators.Limits{V: validators.LimitsVersion, Confidence: 0.95, Accuracy: &validators.AccuracyLimit{Metric: "top1", Slices: &validators.SliceLimit{By: "group"}}}
	if least > 0 {
		l.Accuracy.Slices.Min = &validators.AtLeast{Min: least}
	}
	return l
}

// Every case has to say its slice, and slices of few cases prove nothing.
func TestCheckSlices(t *testing.T) {
	t.Parallel()
	groups := func(values ...int64) map[string]tensor.Tensor {
		n := int64(len(values))
		return map[string]tensor.Tensor{"x": made(t, make([]float32, n), n), "group": made(t, values, n)}
	}
	many := func(count int) []int64 {
		values := make([]int64, count)
		for i := range values {
			values[i] = int64(i)
		}
		return values
	}
	type files = []map[string]tensor.Tensor
	for name, c := range map[string]struct {
		limits  validators.Limits
		files   files
		invalid string // part of the error; empty: none
		warns   []string
	}{
		"no limit on accuracy":     {validators.Limits{}, files{{"x": made(t, []float32{1}, 1)}}, "", nil},
		"no slices":                {validators.Limits{Accuracy: &validators.AccuracyLimit{Metric: "top1"}}, files{{"x": made(t, []float32{1}, 1)}}, "", nil},
		"slices without a bound":   {sliced(0), files{groups(0, 1, 1)}, "", nil},
		"enough cases":             {sliced(0.5), files{groups(make([]int64, 100)...)}, "", nil},
		"enough in two files":      {sliced(0.5), files{groups(make([]int64, 4)...), groups(make([]int64, 4)...)}, "", nil},
		"a slice of one case":      {sliced(0.5), files{groups(append(make([]int64, 100), 3)...)}, "", []string{"slice group=3: accuracy of 50 % cannot be proven"}},
		"two slices of few cases":  {sliced(0.5), files{groups(1, 0)}, "", []string{"slice group=0", "slice group=1"}},
		"the tensor is missing":    {sliced(0), files{groups(0), {"x": made(t, []float32{1}, 1)}}, `b.safetensors: tensor "group", which limits.accuracy.slices.by names: no such tensor: the file has x`, nil},
		"fractions":                {sliced(0), files{{"x": made(t, []float32{1}, 1), "group": made(t, []float32{0.5}, 1)}}, "a.safetensors", nil},
		"as many as there can be":  {sliced(0), files{groups(many(accuracy.MaxSlices)...)}, "", nil},
		"more, over several files": {sliced(0), files{groups(many(accuracy.MaxSlices)...), groups(99)}, "has more than 64 values", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for i, tensors := range c.files {
				fileOf(t, filepath.Join(dir, string(rune('a'+i))+".safetensors"), tensors)
			}
			set, err := readFolder(t, dir, interfaceOf(tensor.Float32, []validators.Dim{sym("n")}, nil))
			if err != nil {
				t.Fatal(err)
			}
			set.Warnings = nil
			if err = set.CheckSlices(c.limits, validators.Interface{}); (err == nil) != (c.invalid == "") ||
				err != nil && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.invalid)) {
				t.Errorf("error %v, want %q", err, c.invalid)
			}
			if len(set.Warnings) != len(c.warns) {
				t.Fatalf("warnings %q, want %q", set.Warnings, c.warns)
			}
			for i, want := range c.warns {
				if !strings.Contains(set.Warnings[i], want) {
					t.Errorf("warning %q, want %q", set.Warnings[i], want)
				}
			}
		})
	}
}

// Boxes of detections are labels of a metric of boxes: five numbers each, any number for a case.
func TestLabelsThatAreBoxes(t *testing.T) {
	t.Parallel()
	iface := interfaceOf(tensor.Float32, []validators.Dim{sym("n")}, nil)
	iface.Outputs = []validators.TensorInfo{{Name: "y", DType: tensor.Float32, Shape: []validators.Dim{sym("n"), size(4), size(6)}}}
	limit := &validators.AccuracyLimit{Metric: "map50"}
	box := []float32{0, 0, 1, 1, 0}
	for name, c := range map[string]struct {
		labels tensor.Tensor
		valid  bool
	}{
		"one box of each case":    {made(t, append(box, box...), 2, 1, 5), true},
		"two boxes of each case":  {made(t, append(append(append(box, box...), box...), box...), 2, 2, 5), true},
		"no dimension of boxes":   {made(t, append(box, box...), 2, 5), false},
		"four numbers":            {made(t, make([]float32, 8), 2, 1, 4), false},
		"of more cases":           {made(t, make([]float32, 15), 3, 1, 5), false},
		"numbers that are no box": {made(t, []float32{1, 1, 0, 0, 0, 1, 1, 0, 0, 0}, 2, 1, 5), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fileOf(t, filepath.Join(dir, "a.safetensors"), map[string]tensor.Tensor{"x": made(t, []float32{1, 2}, 2), "boxes": c.labels})
			set, err := readFolder(t, dir, iface)
			if err != nil {
				t.Fatal(err)
			}
			if err := set.FindLabels("boxes", iface, limit); (err == nil) != c.valid || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
				t.Errorf("error %v, want valid %t", err, c.valid)
			}
		})
	}
}

// A row is checked for the inputs that are asked about.
func TestRowCheck(t *testing.T) {
	t.Parallel()
	iface := interfaceOf(tensor.Float32, []validators.Dim{sym("n")}, []validators.Dim{sym("n")})
	x, wrong := made(t, []float32{1}, 1), made(t, []int64{1}, 1)
	for name, c := range map[string]struct {
		row   cases.Row
		only  []string
		valid bool
	}{
		"all inputs":                  {cases.Row{"x": x, "z": x}, nil, true},
		"one is missing":              {cases.Row{"x": x}, nil, false},
		"one is missing, not asked":   {cases.Row{"x": x}, []string{"x"}, true},
		"one is missing, and asked":   {cases.Row{"x": x}, []string{"z"}, false},
		"one is wrong":                {cases.Row{"x": x, "z": wrong}, nil, false},
		"one is wrong, and not asked": {cases.Row{"x": x, "z": wrong}, []string{"x"}, true},
		"none is asked":               {cases.Row{}, []string{}, true},
	} {
		if err := c.row.Check(iface, c.only); (err == nil) != c.valid || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want valid %t", name, err, c.valid)
		}
	}
}

// Files whose tensors do not have a row for each case are no cases.
func TestEachRowRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, tensors := range map[string]map[string]tensor.Tensor{
		"no rows":        {"x": made(t, []float32{}, 0, 2)},
		"a scalar":       {"x": made(t, []float32{1})},
		"different rows": {"x": made(t, []float32{1, 2}, 2), "y": made(t, []float32{1}, 1)},
		"no tensors":     {},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".safetensors")
		fileOf(t, path, tensors)
		if err := cases.EachRow([]string{path}, func(cases.Row) error { t.Errorf("%s: a row", name); return nil }); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
	bad := filepath.Join(dir, "bad.safetensors")
	if err := os.WriteFile(bad, []byte("no tensors"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"another file": bad, "no file": filepath.Join(dir, "none.safetensors")} {
		if err := cases.EachRow([]string{path}, func(cases.Row) error { return nil }); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
}

// A split leaves at least one case, takes nothing with NaN for calibration, and writes into no folder that has files.
func TestSplitRefuses(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	fileOf(t, filepath.Join(from, "cases-00000.safetensors"), map[string]tensor.Tensor{"x": made(t, []float32{1, 2, 3, 3}, 4)})
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*cases.Split)
		valid  bool
	}{
		"two of three":               {func(s *cases.Split) { s.Count = 2 }, true},
		"all three":                  {func(s *cases.Split) { s.Count = 3 }, false},
		"a folder that has files":    {func(s *cases.Split) { s.Cases = full }, false},
		"another that has files":     {func(s *cases.Split) { s.Calibration = full }, false},
		"from a folder without any":  {func(s *cases.Split) { s.From = full }, false},
		"from a folder that is none": {func(s *cases.Split) { s.From = filepath.Join(full, "none") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			split := cases.Split{From: from, Cases: filepath.Join(dir, "cases"), Calibration: filepath.Join(dir, "calibration"), Count: 1, Seed: 1, IsInput: isInput}
			c.change(&split)
			if done, err := split.Run(); (err == nil) != c.valid || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
				t.Errorf("got %+v and error %v, want valid %t", done, err, c.valid)
			}
		})
	}
}
