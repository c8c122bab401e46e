package pipeline

import (
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Golden outputs that are the most frequent answer everywhere are others than the reference model's, however rare its other answers are.
func TestCompareConstantAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cases, known int // in which something is found, and in which the golden outputs have it
		want         int
	}{
		"nothing is found":      {0, 0, 0},
		"all of it is known":    {64, 64, 0},
		"half of it is known":   {64, 32, 0},
		"less than half":        {64, 31, 33},
		"none of it":            {64, 0, 64},
		"none of five":          {5, 0, 5},
		"none of four":          {4, 0, 0},
		"four of eight are not": {8, 4, 0},
	} {
		answers := tensor.NewComparison(tensor.Options{})
		for number := range 64 {
			now, golden := make([]uint8, 4096), make([]uint8, 4096)
			if number < c.cases {
				now[7*number] = 1
			}
			if number < c.known {
				golden[7*number] = 1
			}
			add(t, answers, number, now, golden)
		}
		if got := constantAnswers(answers); got != c.want {
			t.Errorf("%s: %d cases differ, want %d", name, got, c.want)
		}
	}
}

func add(t *testing.T, c *tensor.Comparison, number int, now, golden []uint8) {
	t.Helper()
	want, err := tensor.New(now, 1, int64(len(now)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := tensor.New(golden, 1, int64(len(golden)))
	if err == nil {
		err = c.Add(number, want, got)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Copies and cases with the golden outputs of another one must not hide a few other cases from the draw.
func TestDrawGolden(t *testing.T) {
	t.Parallel()
	const count, alike, copied = 2000, 1500, 300 // the others differ
	values := make([]float32, count)
	v := verification{p: &Pipeline{}}
	v.copies = make(map[int]bool)
	for i := range values {
		if i >= alike+copied {
			values[i] = float32(i)
		}
		if i >= alike && i < alike+copied {
			v.copies[i] = true
		}
	}
	g := comparisonOf(t, 1, func(int, []float32, []float32) {})
	dir, file := rowsFile(t, values)
	set := registry.CaseSet{Count: count, Shards: []registry.Shard{{File: file, Count: count}}}
	v.cases, v.golden = material{dir: dir, set: &set}, material{dir: dir, set: &set}
	drawn, err := v.drawGolden(0)
	if err != nil || len(drawn) != len(g.sample) {
		t.Fatalf("%d cases, error %v; want %d", len(drawn), err, len(g.sample))
	}
	others, known := 0, make(map[int]bool)
	for _, number := range drawn {
		if v.copies[number] || known[number] {
			t.Errorf("case %d was drawn, a copy or twice", number)
		}
		known[number] = true
		if number >= alike {
			others++
		}
	}
	if others < len(drawn)-1 {
		t.Errorf("%d of %d drawn cases are those that differ, want all but one", others, len(drawn))
	}
}

// rowsFile writes values as the rows of an output, one for each case.
func rowsFile(t *testing.T, values []float32) (dir, name string) {
	t.Helper()
	dir, name = t.TempDir(), "a.safetensors"
	y, err := tensor.New(values, int64(len(values)), 1)
	if err == nil {
		err = cases.WriteShard(filepath.Join(dir, name), map[string]tensor.Tensor{"y": y})
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, name
}
