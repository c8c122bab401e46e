package parity_test

import (
	"errors"
	"io/fs"
	"math"
	"testing"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Fill values are looked for in the golden outputs of all shards, in the elements that a mask leaves.
func TestCompareFindsFillValues(t *testing.T) {
	t.Parallel()
	y := func(values ...float32) map[string]tensor.Tensor {
		return map[string]tensor.Tensor{"y": array(t, []int64{int64(len(values)) / 3, 3}, values...)}
	}
	run := func(options tensor.Options) parity.Run {
		list := []artifact.Shard{{File: "a.safetensors", Count: 1}, {File: "b.safetensors", First: 1, Count: 2}}
		return parity.Run{
			Golden: shards(t, y(1, 2, -1e4), y(3, -1e4, 5, -1e6, 4, 6)), Engine: shards(t, y(1, 2, -1e4), y(3, -1e4, 5, -1e6, 4, 7)),
			Shards: list, Outputs: map[string]tensor.Options{"y": options},
			Masks: parity.Masks{Dir: shards(t, map[string]tensor.Tensor{"m": array(t, []int64{1, 3}, float32(1), 1, 1)},
				map[string]tensor.Tensor{"m": array(t, []int64{2, 3}, float32(1), 1, 1, 0, 1, 1)}), Shards: list},
		}
	}
	for name, c := range map[string]struct {
		options tensor.Options
		mask    bool
		fill    float64
	}{
		"no rule":                      {tensor.Options{}, true, 0},
		"the rule":                     {tensor.Options{Fills: tensor.FillsEqual}, true, 1e4},
		"an outlier that is no case's": {tensor.Options{Fills: tensor.FillsEqual}, false, math.Inf(1)},
		"known":                        {tensor.Options{Fills: tensor.FillsEqual, Fill: 5e5}, false, 5e5},
		"known to have none":           {tensor.Options{Fills: tensor.FillsEqual, Fill: tensor.NoFill}, true, math.Inf(1)},
	} {
		r := run(c.options)
		if c.mask {
			r.Masks.Inputs = map[string]string{"y": "m"}
		}
		found, err := parity.Compare(t.Context(), r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := found.Outputs["y"]
		figures := parity.Figures("float32", got)
		if got.Fill != c.fill || (figures.Fill != 0) != (c.fill > 0 && c.fill < tensor.NoFill) {
			t.Errorf("%s: fill %g, in the report %g; want %g", name, got.Fill, figures.Fill, c.fill)
		}
		if hidden := got.SpreadSNR > 20; hidden == (c.fill == 1e4) {
			t.Errorf("%s: %.1f dB", name, got.SpreadSNR)
		}
	}
	missing := run(tensor.Options{Fills: tensor.FillsEqual})
	missing.Golden = t.TempDir()
	if _, err := parity.Compare(t.Context(), missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v without golden outputs", err)
	}
}

// A value that one case has is no fill value by the copies of that case, wherever they are and however many cases there are.
func TestCopiesMakeNoFillValues(t *testing.T) {
	t.Parallel()
	const n = 150 // more than are read at a time
	for name, c := range map[string]struct {
		at     []int // cases with the value
		copies map[int]bool
		fill   float64
	}{
		"two cases":                  {[]int{3, 140}, nil, 1e4},
		"a copy":                     {[]int{3, 140}, map[int]bool{140: true}, math.Inf(1)},
		"copies at the ends":         {[]int{0, 3, 149}, map[int]bool{0: true, 149: true}, math.Inf(1)},
		"copies around what is read": {[]int{3, 63, 64, 128}, map[int]bool{63: true, 64: true, 128: true}, math.Inf(1)},
		"two cases beside copies":    {[]int{62, 63, 64, 65}, map[int]bool{63: true, 64: true}, 1e4},
		"the last of what is read":   {[]int{63, 127}, map[int]bool{10: true}, 1e4},
	} {
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(i % 5)
		}
		for _, at := range c.at {
			values[at] = -1e4
		}
		y := map[string]tensor.Tensor{"y": array(t, []int64{n, 1}, values...)}
		found, err := parity.Compare(t.Context(), parity.Run{Golden: shards(t, y), Engine: shards(t, y), Copies: moved(c.copies, 1000),
			Shards: []artifact.Shard{{File: "a.safetensors", First: 1000, Count: n}}, Outputs: map[string]tensor.Options{"y": {Fills: tensor.FillsEqual}}})
		if err != nil || found.Outputs["y"].Fill != c.fill {
			t.Errorf("%s: fill %g (%v), want %g", name, found.Outputs["y"].Fill, err, c.fill)
		}
	}
}

// moved are numbers of cases that begin at another one.
func moved(numbers map[int]bool, by int) map[int]bool {
	all := make(map[int]bool, len(numbers))
	for n := range numbers {
		all[n+by] = true
	}
	return all
}
