package goldenset

import (
	"testing"

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
