package ingest

import (
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// Recorded inputs that are like none in use are a warning, and images that have shapes in them and
// sequences are not.
func TestWarnUnlikely(t *testing.T) {
	t.Parallel()
	symbol := func(s string) validators.Dim { return validators.Dim{Symbol: s} }
	images := validators.Interface{V: validators.InterfaceVersion, Inputs: []validators.TensorInfo{{Name: "x", DType: "float32",
		Shape: []validators.Dim{symbol("n"), {Size: 3}, {Size: 16}, {Size: 16}}}}, Dims: map[string]validators.DimRange{"n": {Min: 1, Opt: 1, Max: 8}}}
	tokens := func(length int64) validators.Interface {
		return validators.Interface{V: validators.InterfaceVersion, Inputs: []validators.TensorInfo{{Name: "x", DType: "int64",
			Shape: []validators.Dim{symbol("n"), symbol("l")}}}, Dims: map[string]validators.DimRange{"n": {Min: 1, Opt: 1, Max: 8}, "l": {Min: 1, Opt: length, Max: 8}}}
	}
	for name, c := range map[string]struct {
		iface  validators.Interface
		use    onnx.Use
		draw   cases.Draw
		origin string
		want   string // empty for none
	}{
		"noise for an image":       {images, onnx.Use{Image: true}, cases.Draw{}, artifact.OriginRecorded, `calibration: input "x": neighbouring pixels have nothing in common`},
		"an image of one colour":   {images, onnx.Use{Image: true}, cases.Draw{Values: []float64{0.5}}, artifact.OriginRecorded, ""},
		"noise for other numbers":  {images, onnx.Use{}, cases.Draw{}, artifact.OriginRecorded, ""},
		"generated, which is said": {images, onnx.Use{Image: true}, cases.Draw{}, artifact.OriginGenerated, ""},
		"sequences of one":         {tokens(1), onnx.Use{Rows: 9}, cases.Draw{}, artifact.OriginRecorded, `calibration: input "x": all sequences have one element`},
		"sequences of two":         {tokens(2), onnx.Use{Rows: 9}, cases.Draw{}, artifact.OriginRecorded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := cases.Generate(8, 1, c.iface, map[string]cases.Draw{"x": c.draw}, filepath.Clean(t.TempDir()))
			if err != nil {
				t.Fatal(err)
			}
			set.Record.Origin = c.origin
			if err := warnUnlikely("calibration", &set, c.iface, map[string]onnx.Use{"x": c.use}); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(set.Warnings, "\n")
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("warnings %q, want %q", got, c.want)
			}
		})
	}
}
