package goldenset

import (
	"math"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// The tolerance of a cross-check follows from the values that are no fill values, so that a mask with the lowest float32 does
// not allow anything; nor does a range that float64 cannot hold.
func TestCrossCheckRangeWithoutFillValues(t *testing.T) {
	t.Parallel()
	const low = -math.MaxFloat64
	for name, c := range map[string]struct {
		values []float64
		want   float64
	}{
		"no fill values":       {[]float64{1, -2, 3, 4}, 6},
		"the lowest float32":   {[]float64{1, -math.MaxFloat32, 3, -math.MaxFloat32}, 2},
		"added to scores":      {[]float64{1, -9998, 3, -9999.5}, 2},
		"the range of float64": {[]float64{1, low, 3, math.MaxFloat64}, 2},
		"infinities":           {[]float64{1, math.Inf(-1), math.NaN(), 2}, 1},
	} {
		y, err := tensor.New(c.values, 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "golden.safetensors")
		if err := cases.WriteShard(file, map[string]tensor.Tensor{"y": y}); err != nil {
			t.Fatal(err)
		}
		golden := &Set{Files: []toolchain.OutputFile{{Path: file}}, Set: artifact.CaseSet{Shards: []artifact.Shard{{Count: 2}}}}
		pairs := Pairs{Golden: golden, Sample: []int{0, 1}}
		dtype, got, err := pairs.values("y")
		if err != nil || dtype != tensor.Float64 || got != c.want {
			t.Errorf("%s: a range of %g of %s (%v), want %g", name, got, dtype, err, c.want)
		}
		if _, _, err := pairs.values("z"); err == nil {
			t.Errorf("%s: a range of an output that is not there", name)
		}
	}
}
