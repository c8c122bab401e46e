package consistency

import (
	"testing"

	"mlpromote.dev/mlpromote/validators"
)

// A size is also drawn of a leading dimension that is not called batch: compilers have other code for some sizes of it.
func TestLeading(t *testing.T) {
	t.Parallel()
	rows, other, fixed := validators.Dim{Symbol: "rows"}, validators.Dim{Symbol: "other"}, validators.Dim{Size: 4}
	for name, c := range map[string]struct {
		shapes [][]validators.Dim
		want   string
	}{
		"of one input":           {[][]validators.Dim{{rows, fixed}}, "rows"},
		"of both":                {[][]validators.Dim{{rows, fixed}, {rows}}, "rows"},
		"another of the second":  {[][]validators.Dim{{rows, fixed}, {other}}, ""},
		"a size of the second":   {[][]validators.Dim{{rows, fixed}, {fixed}}, ""},
		"a number as the second": {[][]validators.Dim{{rows, fixed}, nil}, ""},
		"a later one":            {[][]validators.Dim{{fixed, rows}}, ""},
	} {
		var i validators.Interface
		for _, shape := range c.shapes {
			i.Inputs = append(i.Inputs, validators.TensorInfo{Name: "x", Shape: shape})
		}
		if got := leading(i); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
