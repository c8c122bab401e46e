package format_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/validators/format"
)

// The classes of a graph are those that its classifier and its ZipMap name, as text or as numbers.
func TestClasses(t *testing.T) {
	t.Parallel()
	words := func(name string, all ...string) msg {
		m := msg{}.str(1, name)
		for _, word := range all {
			m = m.str(9, word)
		}
		return m.num(20, 8)
	}
	packed := msg{}.str(1, "classlabels_ints").sub(8, protowire.AppendVarint(protowire.AppendVarint(nil, 3), 1<<40)).num(20, 7)
	twice := words("classlabels_strings", "cat", "dog")
	for _, c := range []struct {
		name  string
		nodes []msg
		want  string
	}{
		{"none", []msg{node("Relu")}, ""},
		{"text", []msg{node("LinearClassifier").sub(5, twice)}, "cat|dog"},
		{"the same twice", []msg{node("LinearClassifier").sub(5, twice), node("ZipMap").sub(5, twice)}, "cat|dog"},
		{"different ones", []msg{node("LinearClassifier").sub(5, twice), node("ZipMap").sub(5, words("classlabels_strings", "a", "b")), node("ZipMap").sub(5, twice)}, ""},
		{"numbers", []msg{node("TreeEnsembleClassifier").sub(5, numbers("classlabels_int64s", 2, -5, 9, 10, 11, 12, 13, 14, 15, 16, 17))}, "2|-5|9|10|11|12|13|14|15|16|17"},
		{"packed numbers", []msg{node("SVMClassifier").sub(5, packed)}, "3|1099511627776"},
		{"another attribute", []msg{node("StringNormalizer").sub(5, words("stopwords", "a"))}, ""},
		{"a name too long", []msg{node("LinearClassifier").sub(5, words("classlabels_strings", "a", strings.Repeat("b", 257)))}, ""},
		{"too many", []msg{node("LinearClassifier").sub(5, words("classlabels_strings", slices.Repeat([]string{"a"}, 1<<16+1)...))}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := msg{}
			for _, n := range c.nodes {
				g = g.sub(1, n)
			}
			data := msg{}.num(1, 8).sub(7, g.sub(12, value("y"))).sub(8, opset("", 17))
			m, err := format.ReadONNX(strings.NewReader(string(data)), int64(len(data)), format.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(m.Classes, "|"); got != c.want {
				t.Errorf("classes %.80q, want %q", got, c.want)
			}
		})
	}
}
