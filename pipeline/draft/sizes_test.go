package draft

import (
	"maps"
	"testing"

	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
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
	of := func(least, most int64, why string) onnx.Sizes {
		return onnx.Sizes{Min: least, Opt: least, Max: most, Why: why}
	}
	const convolved, embedded = "convolutions", "an embedding"
	for name, c := range map[string]struct {
		inputs []validators.TensorInfo
		known  map[string]validators.DimRange
		uses   map[string]onnx.Use
		want   map[string]validators.DimRange
		why    string
	}{
		"one reason for two dimensions": {[]validators.TensorInfo{input("image", "height", "width")}, nil,
			map[string]onnx.Use{"image": {Sizes: map[int]onnx.Sizes{0: of(8, 64, convolved), 1: of(16, 64, convolved)}}},
			map[string]validators.DimRange{"height": {Min: 8, Opt: 8, Max: 64}, "width": {Min: 16, Opt: 16, Max: 64}}, convolved},
		"two reasons": {[]validators.TensorInfo{input("image", "height"), input("text", "length")}, nil,
			map[string]onnx.Use{
				"image": {Sizes: map[int]onnx.Sizes{0: of(8, 64, convolved)}}, "text": {Sizes: map[int]onnx.Sizes{0: of(1, 512, embedded)}}},
			map[string]validators.DimRange{"height": {Min: 8, Opt: 8, Max: 64}, "length": {Min: 1, Opt: 1, Max: 512}}, convolved + "; " + embedded},
		"inputs that have no size in common": {[]validators.TensorInfo{input("a", "n"), input("b", "n")}, nil,
			map[string]onnx.Use{"a": {Sizes: map[int]onnx.Sizes{0: of(8, 16, convolved)}}, "b": {Sizes: map[int]onnx.Sizes{0: of(32, 64, embedded)}}},
			map[string]validators.DimRange{}, ""},
		"what is known": {[]validators.TensorInfo{input("a", "n")}, map[string]validators.DimRange{"n": {Min: 1, Opt: 2, Max: 3}},
			map[string]onnx.Use{"a": {Sizes: map[int]onnx.Sizes{0: of(8, 16, convolved)}}},
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

// Where cases have sizes, a draft says them, within what the graph can run.
func TestSizesOfCases(t *testing.T) {
	t.Parallel()
	sizes := func(least, usual, most int64) map[string]validators.DimRange {
		return map[string]validators.DimRange{"size": {Min: least, Opt: usual, Max: most}}
	}
	for name, c := range map[string]struct {
		graph, seen, want map[string]validators.DimRange
	}{
		"within the graph's":   {sizes(32, 224, 256), sizes(1, 64, 64), sizes(32, 64, 256)},
		"larger":               {sizes(32, 224, 256), sizes(1, 320, 320), sizes(32, 320, 320)},
		"along which they lie": {sizes(2, 16, 64), sizes(1, 1, 64), sizes(1, 1, 64)},
		"a graph that is mum":  {nil, sizes(1, 24, 64), sizes(1, 24, 64)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := withSizesOf(validators.Interface{Dims: c.graph}, validators.Interface{Dims: c.seen})
			if !maps.Equal(got.Dims, c.want) {
				t.Errorf("sizes %v, want %v", got.Dims, c.want)
			}
		})
	}
}

// Two inputs with one open dimension get the sizes that both can have, for the reason of the one that
// allows fewer.
func TestSizesOfTwoInputs(t *testing.T) {
	t.Parallel()
	a := onnx.Sizes{Min: 2, Opt: 16, Max: 64, Why: "a"}
	for name, c := range map[string]struct{ b, want onnx.Sizes }{
		"the same":                 {onnx.Sizes{Min: 2, Opt: 16, Max: 64, Why: "b"}, a},
		"wider":                    {onnx.Sizes{Min: 1, Opt: 16, Max: 99, Why: "b"}, a},
		"a smaller most":           {onnx.Sizes{Min: 2, Opt: 8, Max: 32, Why: "b"}, onnx.Sizes{Min: 2, Opt: 16, Max: 32, Why: "b"}},
		"a larger least":           {onnx.Sizes{Min: 24, Opt: 24, Max: 64, Why: "b"}, onnx.Sizes{Min: 24, Opt: 24, Max: 64, Why: "b"}},
		"less than its usual size": {onnx.Sizes{Min: 2, Opt: 4, Max: 8, Why: "b"}, onnx.Sizes{Min: 2, Opt: 8, Max: 8, Why: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := bothSizes(a, c.b); got != c.want {
				t.Errorf("sizes %+v, want %+v", got, c.want)
			}
		})
	}
}
