package ingest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

func limit(n int64) *int64 { return &n }

// A dimension that a spec does not mention has the sizes that the source takes, and one that it mentions may have no others.
func TestAllowedSizes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allowed  [2]*int64
		declared spec.Shapes
		want     validators.DimRange
		problem  string
	}{
		"no bounds":         {[2]*int64{}, nil, validators.DimRange{Min: 1, Opt: 1, Max: 64}, ""},
		"both":              {[2]*int64{limit(4), limit(12)}, nil, validators.DimRange{Min: 4, Opt: 4, Max: 12}, ""},
		"larger than usual": {[2]*int64{limit(100), limit(512)}, nil, validators.DimRange{Min: 100, Opt: 100, Max: 512}, ""},
		"a smallest":        {[2]*int64{limit(100), nil}, nil, validators.DimRange{Min: 100, Opt: 100, Max: 100}, ""},
		"declared within":   {[2]*int64{limit(4), limit(12)}, spec.Shapes{"n": {Min: 4, Opt: 8, Max: 8}}, validators.DimRange{Min: 4, Opt: 8, Max: 8}, ""},
		"too small": {[2]*int64{limit(4), nil}, spec.Shapes{"n": {Min: 1, Opt: 8, Max: 8}}, validators.DimRange{},
			"n is from 1 to 8, and m.pt2 takes sizes from 4"},
		"too large": {[2]*int64{nil, limit(12)}, spec.Shapes{"n": {Min: 1, Opt: 16, Max: 32}}, validators.DimRange{},
			"n is from 1 to 32, and m.pt2 takes sizes up to 12"},
		"elsewhere": {[2]*int64{limit(4), limit(12)}, spec.Shapes{"n": {Min: 16, Opt: 16, Max: 16}}, validators.DimRange{},
			"takes sizes from 4 to 12"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &spec.Spec{Shapes: c.declared, Source: spec.Source{Path: spec.Path{Written: "m.pt2"}}}
			got, err := AllowedSizes{"n": c.allowed}.dims(s)
			if c.problem != "" {
				if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.problem) {
					t.Fatalf("error %v, want CodeInvalid with %q", err, c.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got["n"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}
