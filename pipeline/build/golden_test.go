package build

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Outputs that float16 does not hold are a warning where something computes in it.
func TestBeyondHalf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		precision string
		values    []float32
		want      string
	}{
		"within":       {"fp16", []float32{1, -65504, 3, 4}, ""},
		"beyond":       {"fp16", []float32{1, 2, 3, -7.1e6}, `variant half: output "y" reaches 7e6, float16 ends at 65504`},
		"of float32":   {"fp32", []float32{1, 2, 3, 7.1e6}, ""},
		"infinite":     {"fp16", []float32{1, 2, 3, float32(math.Inf(1))}, ""},
		"compressed":   {"fp16-compressed", []float32{1, 2, 3, 7.1e6}, `reaches 7e6`},
		"all the same": {"fp16", []float32{7e6, 7e6, 7e6, 7e6}, `reaches 7e6`},
	} {
		y, err := tensor.New(c.values, 2, 2)
		file := filepath.Join(t.TempDir(), "golden")
		if err == nil {
			err = cases.WriteShard(file, map[string]tensor.Tensor{"y": y})
		}
		if err != nil {
			t.Fatal(err)
		}
		golden := goldenset.Set{Files: []toolchain.OutputFile{{Path: file}}, Set: artifact.CaseSet{Count: 2, Shards: []artifact.Shard{{Count: 2}}}}
		m := Maker{}
		m.Inputs.Interface.Outputs = []validators.TensorInfo{{Name: "y", Kind: validators.KindValue, DType: tensor.Float32}}
		m.Plan.Engines = []plan.Engine{{Variant: "half", Precision: c.precision}}
		got, err := beyondHalf(m, golden)
		if text := strings.Join(got, "\n"); err != nil || (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %q (%v), want %q", name, text, err, c.want)
		}
	}
}
