package cases

import "testing"

// One of two labels is rare below a tenth of the cases, if it is there at all.
func TestRareOf(t *testing.T) {
	t.Parallel()
	labels := func(ones, zeros int) []float64 {
		values := make([]float64, ones+zeros)
		for i := range ones {
			values[i] = 1
		}
		return values
	}
	for name, c := range map[string]struct {
		values []float64
		want   Rare
	}{
		"3 % positives":   {labels(3, 97), Rare{Label: 1, Count: 3, Cases: 100}},
		"3 % negatives":   {labels(97, 3), Rare{Label: 0, Count: 3, Cases: 100}},
		"a tenth":         {labels(10, 90), Rare{}},
		"one label alone": {labels(0, 100), Rare{}},
		"three classes":   {append(labels(3, 97), 2), Rare{}},
		"no cases":        {nil, Rare{}},
	} {
		if got := rareOf(c.values); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
