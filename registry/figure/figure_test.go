package figure_test

import (
	"math"
	"testing"

	"mlpromote.dev/mlpromote/registry/figure"
)

func TestDigits(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]float64{
		"1174000": 1174012.3, "12350": 12345.6, "0.9876": 0.98761, "2.5e-05": 2.5e-5, "-98770": -98766, "628": 628, "0": 0, "NaN": math.NaN(), "1.5e+20": 1.5e20,
	} {
		if got := figure.Digits(v, 4); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

// Every row can be found by its name and, of outputs, by its key, has a word, and has defaults in the range of its limits.
func TestRows(t *testing.T) {
	t.Parallel()
	words := make(map[string]bool)
	for _, r := range figure.All() {
		if found, ok := figure.Find(r.Name); !ok || found.Word != r.Word || r.Word == "" || words[r.Word] {
			t.Errorf("%s: word %q, found %v with %q; want a word of its own", r.Name, r.Word, ok, found.Word)
		}
		words[r.Word] = true
		if r.Rate && r.Unit != figure.Share {
			t.Errorf("%s is a rate, and no share", r.Name)
		}
		if r.Subject != figure.Output {
			continue
		}
		if found, ok := figure.ByKey(r.Key); !ok || found.Name != r.Name || r.Doc == "" || !(r.Low < r.High) {
			t.Errorf("%s: key %q finds %q, doc %q, limits from %v to %v", r.Name, r.Key, found.Name, r.Doc, r.Low, r.High)
		}
		for precision, limit := range r.Defaults {
			if limit < r.Low || limit > r.High || r.Rate && r.Usual[precision] == 0 && r.UsualPart == 0 {
				t.Errorf("%s in %s: default limit %v", r.Name, precision, limit)
			}
			if half := r.Half(limit); r.Looser(half, limit) != limit || half == limit {
				t.Errorf("%s in %s: half of what %v allows is %v", r.Name, precision, limit, half)
			}
		}
		if (r.Scope == figure.None) != (r.Defaults == nil) || r.Rate != (r.Counts != "") {
			t.Errorf("%s: scope %v with defaults %v, counts %q", r.Name, r.Scope, r.Defaults, r.Counts)
		}
		if _, ok := figure.Find(r.Few); r.Few != "" && !ok {
			t.Errorf("%s takes the default of %q for few values, and there is no such figure", r.Name, r.Few)
		}
	}
	if _, ok := figure.Find("nothing"); ok || len(figure.Names()) != len(figure.Keys()) {
		t.Error("found a figure without a name")
	}
	if _, ok := figure.ByKey(""); ok {
		t.Error("found a figure without a key")
	}
}
