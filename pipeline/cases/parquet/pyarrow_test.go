package parquet_test

import (
	"fmt"
	"os"
	"testing"

	ours "mlpromote.dev/mlpromote/pipeline/cases/parquet"
)

// A file of pandas and pyarrow, which testdata/make.py made.
func TestReadsPyarrow(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("testdata/pyarrow.parquet")
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(file, ours.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"age":               "floats [] [39 38 37 NaN 35]",
		"city":              "text [] [Zürich Rome Zürich Rome Zürich]",
		"member":            "booleans [] [1 0 0 1 0]",
		"image":             "integers [2 2] [39 1 2 3 38]",
		"label":             "integers [] [9 3 6 7 7]",
		"__index_level_0__": "integers [] [78 76 74 72 70]",
	}
	if got.Rows != 40 || len(got.Columns) != len(want) {
		t.Fatalf("%d rows of %d columns, want 40 of %d", got.Rows, len(got.Columns), len(want))
	}
	for _, c := range got.Columns {
		var kind, first string
		switch c.Kind {
		case ours.Boolean:
			kind, first = "booleans", fmt.Sprint(c.Ints[:5])
		case ours.Integer:
			kind, first = "integers", fmt.Sprint(c.Ints[:5])
		case ours.Text:
			kind, first = "text", fmt.Sprint(c.Texts[:5])
		default:
			kind, first = "floats", fmt.Sprint(c.Floats[:5])
		}
		if text := fmt.Sprintf("%s %v %s", kind, c.Shape, first); text != want[c.Name] {
			t.Errorf("column %s has %s, want %s", c.Name, text, want[c.Name])
		}
	}
}
