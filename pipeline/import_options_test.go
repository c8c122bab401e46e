package pipeline

import (
	"reflect"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// Options come from a spec or from JSON.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value any
		want  []string
	}{{[]string{"a"}, []string{"a"}}, {[]any{"a", 1, "b"}, []string{"a", "b"}}, {"a", nil}, {nil, nil}} {
		if got := texts(c.value); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %q, want %q", c.value, got, c.want)
		}
	}
}

// What an importer is told of a source, by its format.
func TestImportOptions(t *testing.T) {
	t.Parallel()
	network := func(kind, norm string) spec.Source {
		return spec.Source{Format: spec.FormatSafetensors, Architecture: &spec.Architecture{Kind: kind, Input: []int64{3, 8}, Heads: 2, Norm: norm}}
	}
	encoder := func(norm string) map[string]any {
		return map[string]any{"kind": "encoder", "input": []string{"3", "8"}, "heads": 2, "norm": norm}
	}
	trusted := spec.Source{Format: spec.FormatSkops}
	trusted.Trust.Types = []string{"b.B", "a.A"}
	for name, c := range map[string]struct {
		source spec.Source
		want   map[string]any
	}{
		"onnx":                  {spec.Source{Format: spec.FormatONNX, Simplify: true}, map[string]any{"simplify": true}},
		"skops":                 {trusted, map[string]any{"trusted": []string{"a.A", "b.B"}}},
		"skops without trust":   {spec.Source{Format: spec.FormatSkops}, map[string]any{"trusted": []string{}}},
		"keras":                 {spec.Source{Format: spec.FormatKeras}, map[string]any{}},
		"a network":             {network("mlp", ""), map[string]any{"kind": "mlp", "input": []string{"3", "8"}}},
		"an encoder":            {network(spec.ArchitectureEncoder, ""), encoder("after")},
		"an encoder, norm said": {network(spec.ArchitectureEncoder, "before"), encoder("before")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := importOptions(c.source, nil)
			delete(got, "layers")
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %#v, want %#v", got, c.want)
			}
		})
	}
}

// The words for a step that was not done say who did it.
func TestRemembered(t *testing.T) {
	t.Parallel()
	for want, origin := range map[string]toolchain.Origin{"cached": {}, "cached in staging": {Cache: "staging"}} {
		if got := remembered(origin); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
