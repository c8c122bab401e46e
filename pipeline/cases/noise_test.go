package cases_test

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// setOf is a set of one shard with the tensor x.
func setOf(t *testing.T, x tensor.Tensor) *cases.Set {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.safetensors")
	fileOf(t, path, map[string]tensor.Tensor{"x": x})
	return &cases.Set{Files: []toolchain.Input{{Name: "a.safetensors", Path: path}}}
}

// Images of independent numbers are noise; what has any shape in it is not.
func TestIsNoise(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	normal := func(int64, int64, int64) float32 { return float32(random.NormFloat64()) }
	disc := func(y, x, _ int64) float32 {
		return 1 / float32(1+math.Exp(math.Hypot(float64(y-8), float64(x-8))-4))
	}
	for name, c := range map[string]struct {
		count, size int64
		last        bool
		pixel       func(y, x, channel int64) float32
		want        bool
	}{
		"normal numbers":         {8, 16, false, normal, true},
		"normal, channels last":  {8, 16, true, normal, true},
		"a disc":                 {8, 16, false, disc, false},
		"a disc, channels last":  {8, 16, true, disc, false},
		"a disc with noise":      {8, 16, false, func(y, x, c int64) float32 { return disc(y, x, c) + 0.3*normal(y, x, c) }, false},
		"one colour":             {8, 16, false, func(_, _, _ int64) float32 { return 0.5 }, false},
		"NaN":                    {8, 16, false, func(_, _, _ int64) float32 { return float32(math.NaN()) }, false},
		"too few pixels to tell": {1, 4, false, normal, false},
	} {
		shape := []int64{c.count, 3, c.size, c.size}
		if c.last {
			shape = []int64{c.count, c.size, c.size, 3}
		}
		var values []float32
		for i := range c.count * 3 * c.size * c.size {
			x, y, channel := i%c.size, i/c.size%c.size, i/(c.size*c.size)%3
			if c.last {
				channel, x, y = i%3, i/3%c.size, i/(3*c.size)%c.size
			}
			values = append(values, c.pixel(y, x, channel))
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := setOf(t, made(t, values, shape...)).IsNoise("x", c.last)
			if err != nil || got != c.want {
				t.Errorf("noise: %t, error %v; want %t", got, err, c.want)
			}
		})
	}
}

// Sequences of one element are told from longer ones, along each axis.
func TestSingle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shape []int64
		rank  int
		axes  []int
		want  bool
	}{
		"one element":               {[]int64{3, 1}, 2, []int{1}, true},
		"two":                       {[]int64{3, 2}, 2, []int{1}, false},
		"a batch of its own":        {[]int64{3, 2, 1}, 2, []int{1}, true},
		"one of two axes":           {[]int64{3, 1, 2}, 3, []int{1, 2}, false},
		"no open axis":              {[]int64{3, 1}, 2, nil, false},
		"fewer axes than the model": {[]int64{3}, 4, []int{1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := int64(1)
			for _, size := range c.shape {
				n *= size
			}
			got, err := setOf(t, made(t, make([]int64, n), c.shape...)).Single("x", c.rank, c.axes)
			if err != nil || got != c.want {
				t.Errorf("single: %t, error %v; want %t", got, err, c.want)
			}
		})
	}
}
