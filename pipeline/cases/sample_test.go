package cases_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// numbered is a case with a number, and a label that is none of its inputs.
func numbered(t testing.TB, n int64, label int64) cases.Row {
	t.Helper()
	x, err := tensor.New([]float32{float32(n), 0}, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	y, err := tensor.New([]int64{label}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return cases.Row{"x": x, "label": y}
}

var isInput = cases.IsInput("")

func offer(t testing.TB, s *cases.Sampler, n int64) cases.Offered {
	t.Helper()
	row := numbered(t, n, 0)
	return s.Offer(row.Sum(isInput), row)
}

func numbers(rows []cases.Row) []int {
	var out []int
	for _, row := range rows {
		out = append(out, int(row["x"].Float64(0)))
	}
	return out
}

// The sample does not depend on the order, and has each case once.
func TestSamplerOrder(t *testing.T) {
	t.Parallel()
	const all = 500
	forward, backward := &cases.Sampler{Most: 50, MaxBytes: 1 << 20, Seed: 7}, &cases.Sampler{Most: 50, MaxBytes: 1 << 20, Seed: 7}
	for i := range all {
		offer(t, forward, int64(i))
		offer(t, backward, int64(all-1-i))
		offer(t, backward, int64(all-1-i))
	}
	a, b := numbers(forward.Rows()), numbers(backward.Rows())
	if len(a) != 50 || !slices.Equal(a, b) {
		t.Errorf("got %v and %v, want the same 50", a, b)
	}
	other := &cases.Sampler{Most: 50, MaxBytes: 1 << 20, Seed: 8}
	for i := range all {
		offer(t, other, int64(i))
	}
	if c := numbers(other.Rows()); slices.Equal(a, c) {
		t.Errorf("another seed took the same %v", c)
	}
}

// Each case is as likely to be kept, whenever it came. Over 400 seeds a case of 40 that are sampled by 10 is
// kept 100 times, with a standard deviation of 8.7; five of those are allowed.
func TestSamplerIsUniform(t *testing.T) {
	t.Parallel()
	kept := make([]int, 40)
	for seed := range uint64(400) {
		s := &cases.Sampler{Most: 10, MaxBytes: 1 << 20, Seed: seed}
		for i := range kept {
			offer(t, s, int64(i))
		}
		for _, n := range numbers(s.Rows()) {
			kept[n]++
		}
	}
	for n, times := range kept {
		if math.Abs(float64(times)-100) > 43 {
			t.Errorf("case %d was kept %d times of 400, want about 100", n, times)
		}
	}
}

func TestSamplerBounds(t *testing.T) {
	t.Parallel()
	size := numbered(t, 0, 0).Bytes()
	s := &cases.Sampler{Most: 100, MaxBytes: 10 * size, Seed: 1}
	s.Know(numbered(t, 3, 0).Sum(isInput))
	if got := offer(t, s, 3); got != cases.Duplicate {
		t.Errorf("a known case: %s, want %s", got, cases.Duplicate)
	}
	if got := offer(t, s, 4); got != cases.Kept {
		t.Errorf("the first case: %s, want %s", got, cases.Kept)
	}
	if got := offer(t, s, 4); got != cases.Duplicate {
		t.Errorf("the same case: %s, want %s", got, cases.Duplicate)
	}
	for i := range 200 {
		offer(t, s, int64(10+i))
	}
	if s.Len() != 10 {
		t.Errorf("%d cases in %d bytes, want 10 of %d each", s.Len(), s.MaxBytes, size)
	}
	small := &cases.Sampler{Most: 100, MaxBytes: size - 1}
	if got := offer(t, small, 1); got != cases.TooLarge || small.Len() != 0 {
		t.Errorf("a case larger than all may be: %s, want %s", got, cases.TooLarge)
	}
	if got := offer(t, new(cases.Sampler), 1); got != cases.TooLarge {
		t.Errorf("the zero sampler: %s, want %s", got, cases.TooLarge)
	}
}

// Rows come back as they were, also in shards of several shapes.
func TestWriterShapes(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "new", "cases")
	w, err := cases.NewWriter(folder, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(6) {
		x, err := tensor.New(slices.Repeat([]int64{i}, int(1+i%2)), 1, 1+i%2)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(cases.Row{"ids": x}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(folder, "cases-00003.safetensors"), filepath.Join(folder, "cases-00004.safetensors")}
	if got := w.Files(); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	got := ""
	if err := cases.EachRow(w.Files(), func(row cases.Row) error { got += fmt.Sprint(row["ids"].Float64s()); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := "[0][2][4][1 1][3 3][5 5]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	found, err := cases.Look(folder, true)
	if err != nil || found.Count != 6 || found.Next != 5 || found.Signature != "ids int64 of 1 dimension" {
		t.Errorf("found %+v, error %v, want 6 cases and the next number 5", found, err)
	}
}

// A split puts equal inputs into one folder, whatever their labels are, and calibrates without NaN.
func TestSplit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	w, err := cases.NewWriter(from, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(40) {
		row := numbered(t, i%20, i)
		if i%20 < 5 {
			nan, err := tensor.New([]float32{float32(i % 20), float32(math.NaN())}, 1, 2)
			if err != nil {
				t.Fatal(err)
			}
			row["x"] = nan
		}
		if err := w.Add(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	split := cases.Split{From: from, Cases: filepath.Join(dir, "cases"),
		Calibration: filepath.Join(dir, "calibration"), Count: 15, Seed: 2, IsInput: isInput}
	done, err := split.Run()
	if err != nil || done != (cases.Divided{Cases: 10, Calibration: 30, Together: 15}) {
		t.Fatalf("got %+v, error %v, want 10 and 30, of them 15 twice", done, err)
	}
	read := func(folder string) []int {
		files, err := cases.FilesOf(folder)
		if err != nil {
			t.Fatal(err)
		}
		var rows []cases.Row
		if err := cases.EachRow(files, func(row cases.Row) error { rows = append(rows, row); return nil }); err != nil {
			t.Fatal(err)
		}
		return numbers(rows)
	}
	kept, calibration := read(split.Cases), read(split.Calibration)
	for _, n := range calibration {
		if slices.Contains(kept, n) || n < 5 {
			t.Errorf("%d calibrates, and is a case or NaN: %v", n, kept)
		}
	}
	for name, count := range map[string]int{"more than there are without NaN": 16, "all": 20} {
		again := split
		again.Cases, again.Calibration, again.Count = filepath.Join(dir, "a"), filepath.Join(dir, "b"), count
		if _, err := again.Run(); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want one", name, err)
		}
	}
	if _, err := split.Run(); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("into folders that are full: error %v, want one", err)
	}
}
