package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Engines are the same where the same runtime loads the same files in the same way.
func TestSameFiles(t *testing.T) {
	t.Parallel()
	one := func() BuiltEngine {
		e := BuiltEngine{Files: []toolchain.OutputFile{{Name: "a", Digest: "sha256:1"}, {Name: "b", Digest: "sha256:2"}}}
		e.Tool.Identity.Name = "r"
		e.Engine.Load = &artifact.LoadProfile{Required: true}
		e.Engine.Providers = []artifact.Provider{{Name: "CUDA", Options: map[string]string{"device": "0"}}}
		return e
	}
	if !one().sameFiles(one()) {
		t.Error("the same engine is another one")
	}
	for name, change := range map[string]func(e *BuiltEngine){
		"another runtime":  func(e *BuiltEngine) { e.Tool.Identity.Name = "s" },
		"loaded otherwise": func(e *BuiltEngine) { e.Engine.Load = nil },
		"another provider": func(e *BuiltEngine) {
			e.Engine.Providers = []artifact.Provider{{Name: "ROCM", Options: map[string]string{"device": "0"}}}
		},
		"no provider":       func(e *BuiltEngine) { e.Engine.Providers = nil },
		"other options":     func(e *BuiltEngine) { e.Engine.Providers = []artifact.Provider{{Name: "CUDA"}} },
		"other bytes":       func(e *BuiltEngine) { e.Files[1].Digest = "sha256:3" },
		"another file name": func(e *BuiltEngine) { e.Files[1].Name = "c" },
		"a file less":       func(e *BuiltEngine) { e.Files = e.Files[:1] },
	} {
		other := one()
		if change(&other); one().sameFiles(other) || other.sameFiles(one()) {
			t.Errorf("%s: it counts as the same", name)
		}
	}
}

// Golden outputs of another machine without a dimension for the cases are refused.
func TestSameOutputsWithoutCases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, y tensor.Tensor) string {
		file := filepath.Join(dir, name)
		if err := cases.WriteShard(file, map[string]tensor.Tensor{"y": y}); err != nil {
			t.Fatal(err)
		}
		return file
	}
	scalar, err := tensor.New([]float32{1})
	if err != nil {
		t.Fatal(err)
	}
	row, err := tensor.New([]float32{1, 2}, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	golden, engine := write("golden.safetensors", scalar), write("engine.safetensors", row)
	if err := sameOutputs(golden, engine); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "has no dimension for the cases") {
		t.Errorf("error %v", err)
	}
	if err := sameOutputs(engine, engine); err != nil {
		t.Error(err)
	}
	if err := os.Remove(engine); err != nil {
		t.Fatal(err)
	}
	if err := sameOutputs(golden, engine); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("error %v for an engine that left nothing", err)
	}
}
