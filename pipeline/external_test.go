//go:build cgo

package pipeline_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// scaled is a model that quantizes by a scale in a file beside it.
func scaled(location string) []byte {
	g := new(graph).input(onnxFloat, 1, 4)
	s := str(num(nil, 2, onnxFloat), 8, "s")
	s = num(sub(s, 13, str(str(nil, 1, "location"), 2, location)), 14, 1)
	g.weights = sub(g.weights, 5, s)
	return g.node("QuantizeLinear", []string{"x", "s"}, "y", nil).onnx(1, 4)
}

// Scales of a model that came quantized are checked, also those that lie beside it, wherever that is among the files.
func TestCheckScales(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T, dir, name string, content []byte) toolchain.Input {
		t.Helper()
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := toolchain.FileInput(toolchain.RoleModel, name, path)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	value := func(v float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)) }
	for name, c := range map[string]struct {
		location string
		files    map[string][]byte
		want     string // part of the error; empty: none
	}{
		"right":             {"s.bin", map[string][]byte{"s.bin": value(0.5)}, ""},
		"behind another":    {"s.bin", map[string][]byte{"a.bin": value(-1), "s.bin": value(0.5)}, ""},
		"before another":    {"s.bin", map[string][]byte{"s.bin": value(0.5), "z.bin": value(-1)}, ""},
		"written with dots": {"./s.bin", map[string][]byte{"s.bin": value(0.5)}, ""},
		"not above 0":       {"s.bin", map[string][]byte{"a.bin": value(0.5), "s.bin": value(-1)}, "QuantizeLinear"},
		"no number":         {"s.bin", map[string][]byte{"s.bin": value(float32(math.NaN()))}, "QuantizeLinear"},
		"not there":         {"s.bin", map[string][]byte{"a.bin": value(0.5)}, `external data "s.bin" is missing`},
		"the model itself":  {"model.onnx", nil, `external data "model.onnx" is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files := []toolchain.Input{write(t, dir, "model.onnx", scaled(c.location))}
			for _, other := range []string{"a.bin", "s.bin", "z.bin"} {
				if content, ok := c.files[other]; ok {
					files = append(files, write(t, dir, other, content))
				}
			}
			err := ingest.CheckScales(files)
			if (err == nil) != (c.want == "") || err != nil && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if err := os.Remove(files[0].Path); err != nil {
				t.Fatal(err)
			}
			if err := ingest.CheckScales(files); err == nil {
				t.Error("without the model: no error")
			}
		})
	}
}

// A model that an importer leaves has its weights from what the importer wrote, and else from the source.
func TestOutcomeModel(t *testing.T) {
	t.Parallel()
	source := func(names ...string) (all []toolchain.Input) {
		for _, n := range names {
			all = append(all, toolchain.Input{Name: n, Path: "source"})
		}
		return all
	}
	for name, c := range map[string]struct {
		location string
		left     []string // beside the model
		external []toolchain.Input
		want     []string
		err      string
	}{
		"written":                        {"w.bin", []string{"w.bin"}, source("w.bin"), []string{"w.bin left"}, ""},
		"of the source":                  {"w.bin", nil, source("w.bin", "other"), []string{"w.bin source"}, ""},
		"of the source, behind another":  {"w.bin", nil, source("other", "w.bin"), []string{"w.bin source"}, ""},
		"of the source, with dots":       {"./w.bin", nil, source("w.bin"), []string{"w.bin source"}, ""},
		"neither":                        {"w.bin", []string{"other"}, source("other"), nil, "the importer left no w.bin, which its model needs"},
		"something else of the importer": {"w.bin", []string{"other"}, source("w.bin"), []string{"w.bin source"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "model.onnx")
			if err := os.WriteFile(path, external(c.location), 0o600); err != nil {
				t.Fatal(err)
			}
			outcome := toolchain.Outcome{Files: []toolchain.OutputFile{{Name: "model.onnx", Path: path}}}
			for _, n := range c.left {
				outcome.Files = append(outcome.Files, toolchain.OutputFile{Name: n, Path: "left"})
			}
			got, err := outcomeModel(outcome, c.external)
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || len(got) == 0 || !slices.Equal(got[1:], c.want) {
				t.Errorf("got %q, error %v; want %q beside the model", got, err, c.want)
			}
		})
	}
}
