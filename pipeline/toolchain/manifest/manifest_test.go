package manifest_test

import (
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/manifest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// The manifests of the examples can be read, and are called what their tools are.
func TestExamples(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../../examples/toolchains/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("examples %v, %v", paths, err)
	}
	for _, path := range paths {
		m, err := manifest.Load(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if filepath.Base(path) != m.Name+".yaml" {
			t.Errorf("%s is of %s", path, m.Name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("name: acc\nlicence: x\nexecutable: acc\nversion: {arguments: [v], pattern: '(1)'}\ncompile: {arguments: ['{model}']}\nengine: {format: a, entry: e, outputs: [e]}\n"))
	f.Add([]byte("name: [\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := manifest.Parse("fuzz.yaml", data)
		if err != nil {
			if registry.CodeOf(err) != registry.CodeInvalid {
				t.Errorf("error %v, want CodeInvalid", err)
			}
			return
		}
		if _, err := m.Profile().CompileOptions(artifact.Target{Name: "t"}, "fp32"); err != nil && registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("options: %v, want CodeInvalid", err)
		}
	})
}
