package parity_test

import (
	"errors"
	"io/fs"
	"math"
	"testing"

	"mlpromote.dev/mlpromote/registry"
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
		list := []registry.Shard{{File: "a.safetensors", Count: 1}, {File: "b.safetensors", First: 1, Count: 2}}
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
