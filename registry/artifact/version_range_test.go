package artifact_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

func TestVersionRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text    string
		in, out []string
	}{
		{"<1.24.0", []string{"1.23.9", "1.9", "0", "1.24.0rc1", ""}, []string{"1.24", "1.24.0", "1.24.0.0", "1.30.0", "1.24.0+cu128"}},
		{"<=1.24", []string{"1.24.0", "1.24.0+cu128"}, []string{"1.24.0.1"}},
		{">1.24", []string{"1.24.0.1", "2", "main"}, []string{"1.24.0", "1.3"}},
		{">=1.22,<1.24", []string{"1.22", "1.23.99"}, []string{"1.21.9", "1.24"}},
		{"1.23.2", []string{"1.23.2", "1.23.2.0", "1.23.2+cpu", "v1.23.2"}, []string{"1.23", "1.23.20"}},
		{"=1.23.2", []string{"1.23.2"}, []string{"1.23.3"}},
		{">=0", []string{"0", "1", "99999999999.1", "x"}, nil},
		{">1.2,<1.2.1", []string{"1.2.0.1"}, []string{"1.2", "1.2.1"}},
	} {
		r, err := artifact.ParseVersionRange(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		for _, version := range c.in {
			if !r.Contains(version) {
				t.Errorf("%q is not in %s", version, c.text)
			}
		}
		for _, version := range c.out {
			if r.Contains(version) {
				t.Errorf("%q is in %s", version, c.text)
			}
		}
	}
}

// A range that says nothing, or not what it seems to say, is refused: it would restrict nothing.
func TestVersionRangeRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", ",", "<", "<1.2,", "1.x", "~1.2", "==1.2", "!=1.2", "=<1.2", "<1.2 || >2", "v1.2", "<-1",
		">2,<1", ">=2,<2", ">2,<=2", "1.2,1.3", "<0", "<1,<2,<3,<4,<5,<6,<7,<8,<9"} {
		if _, err := artifact.ParseVersionRange(text); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%q: error %v, want it refused", text, err)
		}
	}
}
