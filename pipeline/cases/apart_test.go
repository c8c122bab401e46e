package cases_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// pairs is a model that takes a row of two numbers and one more number.
func pairs() validators.Interface {
	return interfaceOf(tensor.Float32, []validators.Dim{sym("n"), size(2)}, []validators.Dim{sym("n")})
}

// rows are cases of that model, by the first number of x and by z; batched ones have one more dimension.
func rows(t *testing.T, batched bool, xz ...[2]float32) map[string]tensor.Tensor {
	t.Helper()
	var x, z []float32
	for _, of := range xz {
		x, z = append(x, of[0], 0), append(z, of[1])
	}
	n := int64(len(xz))
	if batched {
		return map[string]tensor.Tensor{"x": made(t, x, n, 1, 2), "z": made(t, z, n, 1)}
	}
	return map[string]tensor.Tensor{"x": made(t, x, n, 2), "z": made(t, z, n)}
}

// setIn writes files of cases, in the order of their names a, b, ..., and reads them.
func setIn(t *testing.T, files ...map[string]tensor.Tensor) cases.Set {
	t.Helper()
	dir := t.TempDir()
	for i, tensors := range files {
		fileOf(t, filepath.Join(dir, string(rune('a'+i))+".safetensors"), tensors)
	}
	set, err := readFolder(t, dir, pairs())
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Cases are apart from calibration, and from those that limits follow from, if no case of both has the same inputs,
// however they are stored. The message names the first in both.
func TestCasesThatAreInBoth(t *testing.T) {
	t.Parallel()
	type file = map[string]tensor.Tensor
	for name, c := range map[string]struct {
		cases, others []file
		want          []string // parts of the message; empty: they are apart
	}{
		"different":             {[]file{rows(t, false, [2]float32{1, 1}, [2]float32{2, 2})}, []file{rows(t, false, [2]float32{3, 3})}, nil},
		"one input of two":      {[]file{rows(t, false, [2]float32{1, 1})}, []file{rows(t, false, [2]float32{1, 2})}, nil},
		"values exchanged":      {[]file{rows(t, false, [2]float32{1, 2})}, []file{rows(t, false, [2]float32{2, 1})}, nil},
		"the second":            {[]file{rows(t, false, [2]float32{1, 1}, [2]float32{2, 2})}, []file{rows(t, false, [2]float32{2, 2})}, []string{"a.safetensors: case 1", "a.safetensors: case 0", "1 of 2 cases"}},
		"stored as batches":     {[]file{rows(t, false, [2]float32{1, 1}, [2]float32{2, 2})}, []file{rows(t, true, [2]float32{1, 1})}, []string{"a.safetensors: case 0", "1 of 2 cases"}},
		"several, in order":     {[]file{rows(t, false, [2]float32{1, 1}, [2]float32{2, 2}, [2]float32{3, 3})}, []file{rows(t, false, [2]float32{3, 3}, [2]float32{2, 2})}, []string{"case 1 is also", "a.safetensors: case 1", "2 of 3 cases"}},
		"the first of the same": {[]file{rows(t, false, [2]float32{2, 2})}, []file{rows(t, false, [2]float32{2, 2}, [2]float32{1, 1}, [2]float32{2, 2})}, []string{"a.safetensors: case 0 is also", "a.safetensors: case 0;"}},
		"in other files": {[]file{rows(t, false, [2]float32{1, 1}), rows(t, false, [2]float32{2, 2}, [2]float32{3, 3})},
			[]file{rows(t, false, [2]float32{4, 4}), rows(t, false, [2]float32{5, 5}), rows(t, false, [2]float32{6, 6}, [2]float32{3, 3})}, []string{"b.safetensors: case 1", "c.safetensors: case 1", "1 of 3 cases"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, others := setIn(t, c.cases...), setIn(t, c.others...)
			for what, err := range map[string]error{"calibration": cases.CheckApart(set, others, pairs()), "others": cases.CheckOther(others, set, pairs())} {
				if (err == nil) != (len(c.want) == 0) || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
					t.Errorf("%s: error %v, want %q", what, err, c.want)
				}
				for _, want := range c.want {
					if err != nil && !strings.Contains(err.Error(), want) {
						t.Errorf("%s: error %v, want %q", what, err, want)
					}
				}
			}
		})
	}
}

// Generated cases have no file that a person knows.
func TestGeneratedCasesThatAreInBoth(t *testing.T) {
	t.Parallel()
	generated, err := cases.Generate(3, 1, pairs(), nil, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := cases.CheckApart(generated, generated, pairs()); err == nil || !strings.Contains(err.Error(), "generated case 0 is also used for calibration") {
		t.Errorf("error %v, want it to name generated case 0", err)
	}
}

// Cases that cannot be read any more are not taken for cases that are apart.
func TestCasesThatGoAway(t *testing.T) {
	t.Parallel()
	here, gone := setIn(t, rows(t, false, [2]float32{1, 1})), setIn(t, rows(t, false, [2]float32{2, 2}))
	if err := os.Remove(gone.Files[0].Path); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"the cases": cases.CheckApart(gone, here, pairs()), "calibration": cases.CheckApart(here, gone, pairs()),
		"the verdict": cases.CheckOther(gone, here, pairs()), "others": cases.CheckOther(here, gone, pairs()), "separate": gone.Separate(t.TempDir())} {
		if err == nil {
			t.Errorf("%s are gone: no error", name)
		}
	}
}

// Each case gets a file of its own, with all that is said of it, and errors still name the user's file.
func TestSeparate(t *testing.T) {
	t.Parallel()
	first := rows(t, false, [2]float32{1, 1}, [2]float32{2, 2})
	first["label"] = made(t, []int64{7, 8}, 2)
	first["scale"] = made(t, []float32{0.5}) // of the file, and of no case
	set := setIn(t, first, rows(t, false, [2]float32{3, 3}))
	whole := setIn(t, first, rows(t, false, [2]float32{3, 3}))
	if err := set.Separate(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if set.Record.Count != 3 || len(set.Files) != 3 || len(set.Record.Shards) != 3 {
		t.Fatalf("got %d cases in %d files, want 3 in 3", set.Record.Count, len(set.Files))
	}
	var names []string
	for i, file := range set.Files {
		got, err := tensorfile.ReadFile(file.Path, tensorfile.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		x, label := got["x"], got["label"]
		if x.Shape[0] != 1 || x.Float64(0) != float64(i+1) || got["z"].Float64(0) != float64(i+1) || i < 2 && label.Float64(0) != float64(7+i) {
			t.Errorf("file %d has x %v and label %v, want those of case %d", i, x.Float64s(), label.Float64s(), i)
		}
		if _, ok := got["scale"]; ok {
			t.Errorf("file %d has a tensor that is of no case", i)
		}
		if shard := set.Record.Shards[i]; shard.First != i || shard.Count != 1 || shard.File != file.Name {
			t.Errorf("shard %d is %+v, want the case %d in %s", i, shard, i, file.Name)
		}
		names = append(names, file.Name)
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(names))); len(distinct) != 3 {
		t.Errorf("the files are %q, want three names", names)
	}
	if err := cases.CheckApart(set, whole, pairs()); err == nil || !strings.Contains(err.Error(), "that holds for 3 of 3 cases") || !strings.Contains(err.Error(), "a.safetensors (case 0)") {
		t.Errorf("beside the cases as they were: error %v, want all in both", err)
	}
}

// More than a thousand cases stay in their files: each file is one of a part.
func TestSeparateLeavesManyCases(t *testing.T) {
	t.Parallel()
	for count, files := range map[int]int{1000: 1000, 1001: 1} {
		set, err := cases.Generate(count, 1, interfaceOf(tensor.Float32, []validators.Dim{sym("n")}, nil), nil, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := set.Separate(t.TempDir()); err != nil || len(set.Files) != files || set.Record.Count != count {
			t.Errorf("%d cases are in %d files, error %v; want %d", set.Record.Count, len(set.Files), err, files)
		}
	}
}
