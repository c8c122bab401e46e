package spec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
)

// withFile loads a spec in a folder that also has names.txt.
func withFile(t *testing.T, text, names string) (*spec.Spec, error) {
	t.Helper()
	dir := folder(t, text)
	if err := os.WriteFile(filepath.Join(dir, "names.txt"), []byte(names), 0o600); err != nil {
		t.Fatal(err)
	}
	return spec.Load(filepath.Join(dir, spec.File), spec.Options{})
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said, file      string
		inputs, outputs map[string][]string
		want            string // in the error; empty: the names are read
	}{
		"nothing said":          {said: "outputs: {y: {kind: scores}}\n"},
		"labels in the spec":    {said: "outputs: {y: {kind: scores, labels: [cat, dog]}}\n", outputs: map[string][]string{"y": {"cat", "dog"}}},
		"features in the spec":  {said: "inputs: {x: {features: [age]}}\n", inputs: map[string][]string{"x": {"age"}}},
		"labels in a file":      {said: "outputs: {y: {kind: scores, labels: names.txt}}\n", file: "cat\ndog\n", outputs: map[string][]string{"y": {"cat", "dog"}}},
		"features in a file":    {said: "inputs: {x: {features: names.txt}}\n", file: `["age"]`, inputs: map[string][]string{"x": {"age"}}},
		"an empty list":         {said: "outputs: {y: {kind: scores, labels: []}}\n", want: "0 names: want 1 to"},
		"a name of nothing":     {said: "inputs: {x: {features: [age, '']}}\n", want: `name 1 is "": want 1 to`},
		"an empty file":         {said: "outputs: {y: {kind: scores, labels: names.txt}}\n", want: "names.txt: 0 names: want 1 to"},
		"a file that is nested": {said: "outputs: {y: {kind: scores, labels: names.txt}}\n", file: `[["cat"]]`, want: "names.txt: it is nested"},
		"a file that is large": {said: "outputs: {y: {kind: scores, labels: names.txt}}\n",
			file: strings.Repeat("a\n", validators.MaxNamesBytes/2) + "b", want: "want at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := withFile(t, small+c.said, c.file)
			if err != nil {
				t.Fatal(err)
			}
			inputs, outputs, err := s.Names()
			if c.want != "" {
				if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want an error with %q and code %s", err, c.want, registry.CodeInvalid)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			none := map[string][]string{}
			if c.inputs == nil {
				c.inputs = none
			}
			if c.outputs == nil {
				c.outputs = none
			}
			if diff := cmp.Diff(c.inputs, inputs); diff != "" {
				t.Errorf("names of features\n%s", diff)
			}
			if diff := cmp.Diff(c.outputs, outputs); diff != "" {
				t.Errorf("names of classes\n%s", diff)
			}
		})
	}
}

// Names must be of tensors that the model has, one for each class or feature.
func TestCheckNames(t *testing.T) {
	t.Parallel()
	dims := func(n int64) []validators.Dim { return []validators.Dim{{Symbol: "batch"}, {Size: n}} }
	model := validators.Interface{V: validators.InterfaceVersion,
		Inputs:  []validators.TensorInfo{{Name: "x", DType: "float32", Shape: dims(1)}},
		Outputs: []validators.TensorInfo{{Name: "y", DType: "float32", Shape: dims(2), Kind: validators.KindScores}}}
	for name, c := range map[string]struct{ said, want string }{
		"as many as there are":      {"inputs: {x: {features: [age]}}\noutputs: {y: {kind: scores, labels: [cat, dog]}}\n", ""},
		"a feature too many":        {"inputs: {x: {features: [age, size]}}\n", "8:24 "},
		"a class too few":           {"outputs: {y: {kind: scores, labels: [cat]}}\n", "8:37 "},
		"features of another input": {"inputs: {z: {features: [age]}}\n", `names of input "z", which the model does not have`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := load(t, small+c.said)
			if err != nil {
				t.Fatal(err)
			}
			_, outputs, err := s.CheckNames(model)
			if c.want == "" {
				if err != nil || len(outputs["y"]) != 2 {
					t.Errorf("got %v, error %v, want the two classes of y", outputs, err)
				}
				return
			}
			if err == nil || !strings.Contains(problems(t, err), c.want) {
				t.Errorf("got %v, want a problem with %q", err, c.want)
			}
		})
	}
}

// A program in the folder of the spec is found there, and a name stays one to look up.
func TestPythons(t *testing.T) {
	t.Parallel()
	const targets = "targets: [{name: a, cpu: {arch: amd64}, toolchain: {name: iree, python: python3.12}},\n" +
		"  {name: b, cpu: {arch: amd64}, toolchain: {name: openvino, python: ./names.txt}}, linux/arm64]"
	s, err := withFile(t, change("targets: [linux/amd64/v3, linux/amd64, linux/arm64]", targets), "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Pythons()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got["iree"] != "python3.12" || !filepath.IsAbs(got["openvino"]) || filepath.Base(got["openvino"]) != "names.txt" {
		t.Errorf("got %v, want python3.12 for iree and a file of the folder for openvino", got)
	}
}

// A load profile that no engine can have is told once, at the key that says it.
func TestLoadProfileProblems(t *testing.T) {
	t.Parallel()
	const targets = "targets: [linux/amd64/v3, linux/amd64, linux/arm64]"
	for name, c := range map[string]struct{ text, want string }{
		"of a target":               {change(targets, "targets: [{name: a, cpu: {arch: amd64}, load: {options: {nothing: 1}}}]"), "6:47 "},
		"of a variant of all":       {change("variants: [fp32, int8]", "variants: [fp32, {name: b, quantize: {method: fp16}, load: {options: {nothing: 1}}}]"), "7:60 "},
		"of the only variant":       {change("variants: [fp32, int8]", "variants: [{name: b, quantize: {method: fp16}, load: {options: {nothing: 1}}}]"), "7:54 "},
		"an asset in place of it":   {small + "assets: [" + artifact.LoadProfileFile + "]\n", "8:10 "},
		"an asset with other names": {small + "assets: [vocab.txt]\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, c.text)
			if err := os.WriteFile(filepath.Join(dir, artifact.LoadProfileFile), []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := spec.Load(filepath.Join(dir, spec.File), spec.Options{})
			if c.want == "" {
				if err != nil {
					t.Errorf("got %v, want it accepted", err)
				}
				return
			}
			if got := problems(t, err); !strings.HasPrefix(got, c.want) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want one problem at %s", got, c.want)
			}
		})
	}
}
