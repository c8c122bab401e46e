package spec_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
)

func TestDraftIsLoaded(t *testing.T) {
	t.Parallel()
	dim := func(symbol string) validators.Dim { return validators.Dim{Symbol: symbol} }
	model := validators.Interface{
		Inputs:  []validators.TensorInfo{{Name: "x", DType: "float32", Shape: []validators.Dim{dim("batch"), dim("past + 1"), dim("yes"), {Size: 8}}}},
		Outputs: []validators.TensorInfo{{Name: "y", DType: "float32", Shape: []validators.Dim{dim("batch"), dim("found")}}},
		Dims:    map[string]validators.DimRange{"batch": {Min: 1, Opt: 4, Max: 8}},
	}
	for _, c := range []struct{ file, model string }{
		{"digits.onnx", "digits"},
		{"ResNet 50.v1.onnx", "resnet-50-v1"},
		{"sub/#1: ä \"q\" 'r'.onnx", "1-q-r"},
		{"sources.onnx", "model"},
		{"ä.onnx", "model"},
		{"2024.onnx", "2024"},
		{"1e5", "1e5"},
		{"true", "true"},
		{strings.Repeat("a", 200) + ".onnx", strings.Repeat("a", 100)},
	} {
		dir := folder(t, "")
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(c.file)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		kinds := []spec.DraftedKind{{Output: "y", Guess: validators.Guess{Kind: validators.KindScores, Why: "it has a row of numbers for each case"}}}
		text, err := spec.Draft(spec.DraftOptions{Source: c.file, Interface: model, Target: "linux/arm64", Kinds: kinds})
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(text), "\n"); lines > 26 {
			t.Errorf("%s: %d lines", c.file, lines)
		}
		path := filepath.Join(dir, spec.File)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := spec.Load(path, spec.Options{})
		if err != nil {
			t.Errorf("%s: %v\n%s", c.file, err, text)
			continue
		}
		if s.Model != c.model || s.Version != "0.1.0" || s.Source.Path.Written != c.file ||
			s.Cases.Generate != 16 || s.Cases.Seed != 1 || s.Targets[0].Name != "linux-arm64" {
			t.Errorf("%s: %+v", c.file, s)
		}
		if diff := cmp.Diff(map[string]validators.Kind{"y": validators.KindScores}, s.Kinds()); diff != "" {
			t.Errorf("%s: kinds of outputs\n%s", c.file, diff)
		}
		if s.Cases.Origin() != artifact.OriginGenerated {
			t.Errorf("origin %q", s.Cases.Origin())
		}
		want := map[string]validators.DimRange{"batch": {Min: 1, Opt: 4, Max: 8},
			"past + 1": validators.DefaultDimRange(), "yes": validators.DefaultDimRange()}
		if diff := cmp.Diff(want, s.Shapes.Dims()); diff != "" {
			t.Errorf("%s: %s", c.file, diff)
		}
	}
}

func TestDraftAdviceIsLoaded(t *testing.T) {
	t.Parallel()
	text, err := spec.Draft(spec.DraftOptions{Source: "m.onnx"})
	if err != nil {
		t.Fatal(err)
	}
	// What the comments advise, without their '#', in place of what is there.
	var lines []string
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "#   cases: {path: cases/, labels: label}"):
			line = "cases: {path: cases/, labels: label}\n"
		case strings.HasPrefix(line, "#   variants: [fp32, int8]"), strings.HasPrefix(line, "#   calibration: {path: calibration/}"):
			line, _, _ = strings.Cut(strings.TrimPrefix(line, "#   "), " (")
			line = strings.TrimSpace(line) + "\n"
		case strings.HasPrefix(line, "cases:"), strings.HasPrefix(line, "variants:"):
			continue
		}
		lines = append(lines, line)
	}
	s, err := load(t, strings.Join(lines, ""))
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(lines, ""))
	}
	if s.Cases.Labels != "label" || len(s.Variants) != 2 || s.Calibration == nil {
		t.Errorf("%+v", s)
	}
}

func TestDraftRefuses(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"", "\xff.onnx"} {
		if _, err := spec.Draft(spec.DraftOptions{Source: source}); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%q: %v", source, err)
		}
	}
}

// The kinds of several outputs stand each on a line, with why. A draft says the first six, and stays
// short enough with all that it can have.
func TestDraftKinds(t *testing.T) {
	t.Parallel()
	var kinds []spec.DraftedKind
	for _, name := range []string{"a", "b: c", "on", "\xff", "", "ä", "#", "past", "g", "h"} {
		kinds = append(kinds, spec.DraftedKind{Output: name, Guess: validators.Guess{Kind: validators.KindState, Why: "its name has past"}})
	}
	model := validators.Interface{Inputs: []validators.TensorInfo{{Name: "x", DType: "float32", Shape: []validators.Dim{{Symbol: "batch"}}}}}
	text, err := spec.Draft(spec.DraftOptions{Source: "m.onnx", Interface: model, Kinds: kinds})
	if err != nil {
		t.Fatal(err)
	}
	s, err := load(t, string(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var got []string
	for name, kind := range s.Kinds() {
		if got = append(got, name); kind != validators.KindState {
			t.Errorf("output %s has kind %s, want %s", name, kind, validators.KindState)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"#", "a", "b: c", "on", "past", "ä"}, got); diff != "" {
		t.Errorf("outputs\n%s", diff)
	}
	if !strings.Contains(string(text), "`mlpromote plan` shows 2 more") ||
		strings.Count(string(text), "# its name has past\n") != 6 || strings.Count(string(text), "\n") > 26 {
		t.Errorf("draft:\n%s", text)
	}
}

// A draft says why its sizes are these, unless a model's names would break the line.
func TestDraftSizes(t *testing.T) {
	t.Parallel()
	open := validators.Interface{Inputs: []validators.TensorInfo{{Name: "x", DType: "float32", Shape: []validators.Dim{{Symbol: "size"}}}},
		Dims: map[string]validators.DimRange{"size": {Min: 32, Opt: 224, Max: 256}}}
	for name, c := range map[string]struct {
		iface validators.Interface
		why   string
		want  string
	}{
		"a reason":             {open, "strides of 32", "# Sizes that the graph takes: strides of 32.\nshapes: {size: [32, 224, 256]}"},
		"none":                 {open, "", "source: m.onnx\nshapes: {size: [32, 224, 256]}"},
		"more than a line":     {open, "strides\nof 32", "source: m.onnx\nshapes: {size: [32, 224, 256]}"},
		"nothing that is open": {validators.Interface{}, "strides of 32", "source: m.onnx\n\n#"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := spec.Draft(spec.DraftOptions{Source: "m.onnx", Interface: c.iface, Sizes: c.why})
			if err != nil || !strings.Contains(string(text), c.want) {
				t.Errorf("draft %q, error %v; want %q", text, err, c.want)
			}
		})
	}
}
