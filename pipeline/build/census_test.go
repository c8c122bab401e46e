package build

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Operators are counted in an engine that is an ONNX graph, else in the graph that its compiler took, and else not at all.
func TestCensus(t *testing.T) {
	t.Parallel()
	digits := filepath.Join("..", "..", "examples", "digits", "digits.onnx")
	other := filepath.Join(t.TempDir(), "engine.bin")
	if err := os.WriteFile(other, []byte("no graph"), 0o600); err != nil {
		t.Fatal(err)
	}
	onnx := toolchain.Profile{Format: "onnx", Entry: "model.onnx"}
	graph := []toolchain.Input{{Role: toolchain.RoleModel, Name: "model.onnx", Path: digits}}
	for name, c := range map[string]struct {
		profile toolchain.Profile
		file    string
		graph   []toolchain.Input
		of      string
	}{
		"an engine in ONNX":         {onnx, digits, nil, evidence.CensusOfEngine},
		"compiled from ONNX":        {toolchain.Profile{Format: "x", Entry: "engine.bin"}, other, graph, evidence.CensusOfGraph},
		"compiled from other files": {toolchain.Profile{Format: "x", Entry: "engine.bin"}, other, nil, ""},
		"not what it says":          {onnx, other, graph, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := census(c.profile, []toolchain.OutputFile{{Name: c.profile.Entry, Path: c.file}}, c.graph)
			if c.of == "" {
				if got != nil {
					t.Errorf("got %v, want none", got)
				}
				return
			}
			want := &evidence.Census{Of: c.of, Counts: map[string]int{}}
			if got == nil || got.Of != want.Of || got.Counts["ai.onnx.Conv"]+got.Counts["ai.onnx.Gemm"]+got.Counts["ai.onnx.MatMul"] == 0 {
				t.Errorf("got %s, want the operators of the model, of the %s", cmp.Diff(want, got), c.of)
			}
		})
	}
}
