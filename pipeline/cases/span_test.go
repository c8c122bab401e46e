package cases_test

import (
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Calibration data that is scaled or shifted is unlike the cases; a sample of the same values is not.
func TestUnlike(t *testing.T) {
	t.Parallel()
	iface := validators.Interface{Inputs: []validators.TensorInfo{{Name: "ids", DType: tensor.Int64}, {Name: "x", DType: tensor.Float32}}}
	write := func(name string, values []float32) []string {
		for len(values) > 1 && len(values) < 20 {
			values = append(values, values...)
		}
		path := filepath.Join(t.TempDir(), name+".safetensors")
		if err := cases.WriteShard(path, map[string]tensor.Tensor{"x": made(t, values, int64(len(values)), 1), "ids": made(t, []int64{int64(len(values))}, 1, 1)}); err != nil {
			t.Fatal(err)
		}
		return []string{path}
	}
	in := write("cases", []float32{0, 3, 16, 9})
	for name, c := range map[string]struct {
		values []float32
		want   string
	}{
		"too few":  {[]float32{900}, ""},
		"alike":    {[]float32{1, 15}, ""},
		"a half":   {[]float32{0, 8}, ""},
		"scaled":   {[]float32{0, 1}, `input "x" goes from 0 to 1 in the calibration data, and from 0 to 16 in the cases`},
		"enlarged": {[]float32{0, 255}, `input "x" goes from 0 to 255`},
		"shifted":  {[]float32{-9, -1}, `input "x" goes from -9 to -1`},
	} {
		got, err := cases.Unlike(write(name, c.values), in, iface)
		if err != nil || !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, error %v; want %q", name, got, err, c.want)
		}
	}
	if _, err := cases.Unlike([]string{filepath.Join(t.TempDir(), "none")}, in, iface); err == nil {
		t.Error("no file: want an error")
	}
}
