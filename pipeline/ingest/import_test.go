package ingest

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

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

// What an importer did is said where one ran.
func TestImporterInProvenance(t *testing.T) {
	t.Parallel()
	if got := (Model{}).Importer(); got != nil {
		t.Errorf("without an import: got %v, want nothing", got)
	}
	m := Model{Plan: &plan.Import{}, Identity: toolchain.Identity{Name: "torch"}}
	m.Step.Outcome.Result = json.RawMessage(`{"opset": 17}`)
	text, err := json.Marshal(m.Importer())
	if err != nil || !strings.Contains(string(text), `"torch"`) || !strings.Contains(string(text), `{"opset":17}`) {
		t.Errorf("got %s, error %v; want the tool and what it said", text, err)
	}
}

// An importer is told of inputs in four lists; a dimension without a size has the one that the spec expects, or 2.
func TestInputOptions(t *testing.T) {
	t.Parallel()
	got := inputOptions([]spec.SourceInput{
		{Name: "image", Shape: []spec.Dimension{{Symbol: "batch"}, {Size: 3}, {Symbol: "h"}}},
		{Name: "n", DType: "int64"},
	}, spec.Shapes{"h": {Opt: 224}})
	want := map[string]any{"names": []string{"image", "n"}, "dtypes": []string{"float32", "int64"},
		"shapes": []string{"batch,3,h", ""}, "examples": []string{"2,3,224", ""}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
