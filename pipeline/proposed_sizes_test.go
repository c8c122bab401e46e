package pipeline

import (
	"maps"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format"
)

// Open dimensions get the sizes that the graph can run, and each reason is said once. What the interface says stays.
func TestProposedSizes(t *testing.T) {
	t.Parallel()
	input := func(name string, symbols ...string) validators.TensorInfo {
		info := validators.TensorInfo{Name: name, DType: "float32"}
		for _, symbol := range symbols {
			info.Shape = append(info.Shape, validators.Dim{Symbol: symbol})
		}
		return info
	}
	of := func(least, most int64, why string) format.Sizes {
		return format.Sizes{Min: least, Opt: least, Max: most, Why: why}
	}
	const convolved, embedded = "convolutions", "an embedding"
	for name, c := range map[string]struct {
		inputs []validators.TensorInfo
		known  map[string]validators.DimRange
		uses   map[string]format.Use
		want   map[string]validators.DimRange
		why    string
	}{
		"one reason for two dimensions": {[]validators.TensorInfo{input("image", "height", "width")}, nil,
			map[string]format.Use{"image": {Sizes: map[int]format.Sizes{0: of(8, 64, convolved), 1: of(16, 64, convolved)}}},
			map[string]validators.DimRange{"height": {Min: 8, Opt: 8, Max: 64}, "width": {Min: 16, Opt: 16, Max: 64}}, convolved},
		"two reasons": {[]validators.TensorInfo{input("image", "height"), input("text", "length")}, nil,
			map[string]format.Use{
				"image": {Sizes: map[int]format.Sizes{0: of(8, 64, convolved)}}, "text": {Sizes: map[int]format.Sizes{0: of(1, 512, embedded)}}},
			map[string]validators.DimRange{"height": {Min: 8, Opt: 8, Max: 64}, "length": {Min: 1, Opt: 1, Max: 512}}, convolved + "; " + embedded},
		"inputs that have no size in common": {[]validators.TensorInfo{input("a", "n"), input("b", "n")}, nil,
			map[string]format.Use{"a": {Sizes: map[int]format.Sizes{0: of(8, 16, convolved)}}, "b": {Sizes: map[int]format.Sizes{0: of(32, 64, embedded)}}},
			map[string]validators.DimRange{}, ""},
		"what is known": {[]validators.TensorInfo{input("a", "n")}, map[string]validators.DimRange{"n": {Min: 1, Opt: 2, Max: 3}},
			map[string]format.Use{"a": {Sizes: map[int]format.Sizes{0: of(8, 16, convolved)}}},
			map[string]validators.DimRange{"n": {Min: 1, Opt: 2, Max: 3}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, why := proposedSizes(validators.Interface{Inputs: c.inputs, Dims: c.known}, c.uses)
			if !maps.Equal(got.Dims, c.want) || why != c.why {
				t.Errorf("got %v because of %q, want %v because of %q", got.Dims, why, c.want, c.why)
			}
		})
	}
}

// Rows of a file that is not there, or not one of tensors, are an error and no empty file.
func TestWriteRowsOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := writeRows(filepath.Join(dir, "out"), []rowsOf{{path: filepath.Join(dir, "none"), end: 1, count: 1}})
	if err == nil {
		t.Error("no error, want one about the missing file")
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*")); len(found) > 0 {
		t.Errorf("it left %q", found)
	}
}
