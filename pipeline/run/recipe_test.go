package run

import (
	"slices"
	"testing"
)

// Options come from a spec or from JSON.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value any
		want  []string
	}{{[]string{"a"}, []string{"a"}}, {[]any{"a", 1, "b"}, []string{"a", "b"}}, {"a", nil}, {nil, nil}} {
		if got := Texts(c.value); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %q, want %q", c.value, got, c.want)
		}
	}
}
