package onnx_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/formattest"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// The classes of a graph are those that its classifier and its ZipMap name, as text or as numbers.
func TestClasses(t *testing.T) {
	t.Parallel()
	words := func(name string, all ...string) formattest.Msg {
		m := formattest.Msg{}.Str(1, name)
		for _, word := range all {
			m = m.Str(9, word)
		}
		return m.Num(20, 8)
	}
	packed := formattest.Msg{}.Str(1, "classlabels_ints").Sub(8, protowire.AppendVarint(protowire.AppendVarint(nil, 3), 1<<40)).Num(20, 7)
	twice := words("classlabels_strings", "cat", "dog")
	for _, c := range []struct {
		name  string
		nodes []formattest.Msg
		want  string
	}{
		{"none", []formattest.Msg{formattest.Node("Relu")}, ""},
		{"text", []formattest.Msg{formattest.Node("LinearClassifier").Sub(5, twice)}, "cat|dog"},
		{"the same twice", []formattest.Msg{formattest.Node("LinearClassifier").Sub(5, twice), formattest.Node("ZipMap").Sub(5, twice)}, "cat|dog"},
		{"different ones", []formattest.Msg{formattest.Node("LinearClassifier").Sub(5, twice), formattest.Node("ZipMap").Sub(5, words("classlabels_strings", "a", "b")), formattest.Node("ZipMap").Sub(5, twice)}, ""},
		{"numbers", []formattest.Msg{formattest.Node("TreeEnsembleClassifier").Sub(5, numbers("classlabels_int64s", 2, -5, 9, 10, 11, 12, 13, 14, 15, 16, 17))}, "2|-5|9|10|11|12|13|14|15|16|17"},
		{"packed numbers", []formattest.Msg{formattest.Node("SVMClassifier").Sub(5, packed)}, "3|1099511627776"},
		{"another attribute", []formattest.Msg{formattest.Node("StringNormalizer").Sub(5, words("stopwords", "a"))}, ""},
		{"a name too long", []formattest.Msg{formattest.Node("LinearClassifier").Sub(5, words("classlabels_strings", "a", strings.Repeat("b", 257)))}, ""},
		{"too many", []formattest.Msg{formattest.Node("LinearClassifier").Sub(5, words("classlabels_strings", slices.Repeat([]string{"a"}, 1<<16+1)...))}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := formattest.Msg{}
			for _, n := range c.nodes {
				g = g.Sub(1, n)
			}
			data := formattest.Msg{}.Num(1, 8).Sub(7, g.Sub(12, formattest.Value("y"))).Sub(8, formattest.Opset("", 17))
			m, err := onnx.Read(strings.NewReader(string(data)), int64(len(data)), bound.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(m.Classes, "|"); got != c.want {
				t.Errorf("classes %.80q, want %q", got, c.want)
			}
		})
	}
}
