package spec_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/spec"
)

func TestParseCache(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"oci://registry.example.com/team/cache":   true,
		"https://registry.example.com/team/cache": false,
		"registry.example.com/team/cache":         false,
		"oci://registry.example.com":              false,
		"oci://bad host/team/cache":               false,
		"oci://registry.example.com/Team":         false,
	} {
		c, err := spec.ParseCache(text)
		if (err == nil) != want {
			t.Errorf("%s: got %+v, error %v; want it read: %t", text, c, err, want)
		}
		if want && c.String() != text {
			t.Errorf("got %s, want it as it was read, %s", c, text)
		}
	}
}

func TestTargetLoadProfile(t *testing.T) {
	t.Parallel()
	target := spec.Target{Toolchain: spec.Toolchain{Name: "onnxruntime"}}
	options := func(name, value string) *spec.Loading { return &spec.Loading{Options: spec.Settings{name: value}} }
	for name, c := range map[string]struct {
		load    *spec.Loading
		profile bool
		fails   bool
	}{
		"nothing said":      {nil, false, false},
		"nothing in it":     {&spec.Loading{}, false, false},
		"required nothing":  {&spec.Loading{Required: true}, false, true},
		"an option":         {options("graph_optimization_level", "disable_all"), true, false},
		"an unknown option": {options("no_such_option", "1"), false, true},
	} {
		got, err := target.LoadProfile(spec.Variant{Load: c.load})
		if (got != nil) != c.profile || (err != nil) != c.fails {
			t.Errorf("%s: got %+v, error %v; want a profile: %t, an error: %t", name, got, err, c.profile, c.fails)
		}
	}
}

func TestHeadsOfArchitectures(t *testing.T) {
	t.Parallel()
	for architecture, want := range map[string]bool{
		"kind: mlp, input: [4], layers: [fc]":                          true,
		"kind: mlp, input: [4], layers: [fc], heads: 2":                false,
		"kind: mlp, input: [4], layers: [fc], norm: pre":               false,
		"kind: encoder, input: [4], layers: [fc]":                      false,
		"kind: encoder, input: [4], layers: [fc], heads: 2":            true,
		"kind: encoder, input: [4], layers: [fc], heads: 2, norm: pre": true,
	} {
		_, err := load(t, change("source: m.onnx", "source: {path: m.onnx, format: safetensors, architecture: {"+architecture+"}}"))
		if got := err == nil || !strings.Contains(err.Error(), "no other network has heads or norm"); got != want {
			t.Errorf("%s: error %v, want its heads accepted: %t", architecture, err, want)
		}
	}
}

func TestOnCasesWithoutAccuracy(t *testing.T) {
	t.Parallel()
	s, err := load(t, small)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.OnCases("elsewhere"); got.Limits.Accuracy != nil || got.Cases.Path.Written != "elsewhere" {
		t.Errorf("got accuracy %+v of cases in %q, want none, of elsewhere", got.Limits.Accuracy, got.Cases.Path.Written)
	}
	s.Limits.Accuracy = &spec.Accuracy{Metric: "top1", Output: "logits"}
	if got := s.OnCases("elsewhere").Limits.Accuracy; got == nil || got.Metric != "top1" || got.Output != "logits" || got.Relative == nil {
		t.Errorf("got accuracy %+v, want the metric of the spec, relative", got)
	}
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "mlpromote.yaml")
	if err := os.WriteFile(file, []byte("a: 1\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	refusal := errors.New("no")
	if err := spec.Rewrite(file, func([]byte) ([]byte, error) { return nil, refusal }); !errors.Is(err, refusal) {
		t.Errorf("got error %v, want that of the change", err)
	}
	if err := spec.Rewrite(file, func(text []byte) ([]byte, error) { return append(text, "b: 2\n"...), nil }); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); string(text) != "a: 1\nb: 2\n" || err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("got %q, mode %v, error %v; want both lines, mode 0640", text, info.Mode(), err)
	}
	// What cannot be written is an error: a folder is in the way of the new text's place.
	gone := filepath.Join(dir, "gone")
	err = errors.Join(os.Mkdir(gone, 0o700), os.WriteFile(filepath.Join(gone, "s.yaml"), []byte("a: 1\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if err := spec.Rewrite(filepath.Join(gone, "s.yaml"), func(text []byte) ([]byte, error) {
		return text, errors.Join(os.Remove(filepath.Join(gone, "s.yaml")), os.Mkdir(filepath.Join(gone, "s.yaml"), 0o700))
	}); err == nil {
		t.Error("got no error for a text that could not be written")
	}
}
