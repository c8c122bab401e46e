package mlflow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadExample(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, text string
		want       [][]string
	}{
		"a table":          {"dataframe", `{"columns": ["a", "b"], "data": [[1.50, null], [2, "x"]]}`, [][]string{{"a", "b"}, {"1.50", ""}, {"2", "x"}}},
		"numbered columns": {"dataframe", `{"columns": [0, 1], "data": [[true, 1e-3]]}`, [][]string{{"0", "1"}, {"true", "1e-3"}}},
		"an array":         {"ndarray", `[[1, 2], [3, 4]]`, [][]string{{"x0", "x1"}, {"1", "2"}, {"3", "4"}}},
		"images":           {"ndarray", `[[[1, 2], [3, 4]]]`, [][]string{{"x0", "x1", "x2", "x3"}, {"1", "2", "3", "4"}}},
	} {
		got, err := readExample([]byte(c.text), c.kind)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for name, c := range map[string]struct{ kind, text string }{
		"nothing":                {"ndarray", ``},
		"a mapping of arrays":    {"ndarray", `{"a": [1]}`},
		"an empty array":         {"ndarray", `[]`},
		"rows of two lengths":    {"ndarray", `[[1], [2, 3]]`},
		"no columns":             {"dataframe", `{"data": [[1]]}`},
		"a column without name":  {"dataframe", `{"columns": [""], "data": [[1]]}`},
		"a mapping in a cell":    {"dataframe", `{"columns": ["a"], "data": [[{"b": 1}]]}`},
		"text of several lines":  {"dataframe", `{"columns": ["a"], "data": [["b\nc"]]}`},
		"nested beyond the JSON": {"ndarray", strings.Repeat("[", 100_000)},
	} {
		if got, err := readExample([]byte(c.text), c.kind); err == nil {
			t.Errorf("%s: %v, want an error", name, got)
		}
	}
}

// An example is text of a stranger: each line of its table has as many cells as the first.
func FuzzExample(f *testing.F) {
	f.Add([]byte(`{"columns": ["a"], "data": [[1]]}`), true)
	f.Add([]byte(`[[1, [2]], [3, 4]]`), false)
	f.Fuzz(func(t *testing.T, data []byte, table bool) {
		kind := "ndarray"
		if table {
			kind = "dataframe"
		}
		got, err := readExample(data, kind)
		if err != nil {
			return
		}
		for _, line := range got {
			if len(line) != len(got[0]) || len(line) == 0 {
				t.Fatalf("lines of %d and %d cells", len(got[0]), len(line))
			}
		}
	})
}
