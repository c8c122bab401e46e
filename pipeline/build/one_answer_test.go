package build

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Classes that are the same in all cases are a warning, in whatever files they are; quantities are none.
func TestOneAnswer(t *testing.T) {
	t.Parallel()
	with := func(at, n int) []int64 {
		values := make([]int64, n)
		values[at] = 1
		return values
	}
	const warning = `output "y" has the same answer in 200 of 200 cases: an engine that always gives it can pass: add cases with other answers`
	but := func(others int) string { return strings.Replace(warning, "200", fmt.Sprint(200-others), 1) }
	for name, c := range map[string]struct {
		files [][]int64
		width int64
		kind  validators.Kind
		want  string
	}{
		"the same class":          {[][]int64{make([]int64, 200)}, 1, validators.KindClass, warning},
		"in two files":            {[][]int64{slices.Repeat([]int64{7}, 120), slices.Repeat([]int64{7}, 80)}, 1, validators.KindLabel, warning},
		"one of each file":        {[][]int64{slices.Repeat([]int64{7}, 120), slices.Repeat([]int64{8}, 80)}, 1, validators.KindClass, ""},
		"another at the end":      {[][]int64{with(199, 200)}, 1, validators.KindClass, but(1)},
		"another in the second":   {[][]int64{make([]int64, 100), with(70, 100)}, 1, validators.KindClass, but(1)},
		"the same mask":           {[][]int64{slices.Repeat([]int64{0, 1, 2}, 200)}, 3, validators.KindClass, warning},
		"another mask":            {[][]int64{append(slices.Repeat([]int64{0, 1, 2}, 199), 0, 2, 1)}, 3, validators.KindClass, but(1)},
		"five others":             {[][]int64{append(make([]int64, 195), 1, 2, 3, 4, 5)}, 1, validators.KindClass, ""},
		"one of five":             {[][]int64{{1, 1, 1, 1, 2}}, 1, validators.KindClass, ""},
		"the same quantity":       {[][]int64{make([]int64, 200)}, 1, validators.KindValue, ""},
		"whole numbers as scores": {[][]int64{slices.Repeat([]int64{0, 5}, 200)}, 2, validators.KindScores, warning},
		"one case":                {[][]int64{{3}}, 1, validators.KindClass, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden, dir := goldenset.Set{}, t.TempDir()
			for i, values := range c.files {
				count := len(values) / int(c.width)
				y, err := tensor.New(values, int64(count), c.width)
				file := filepath.Join(dir, string(rune('a'+i)))
				if err == nil {
					err = cases.WriteShard(file, map[string]tensor.Tensor{"y": y})
				}
				if err != nil {
					t.Fatal(err)
				}
				golden.Files = append(golden.Files, toolchain.OutputFile{Path: file})
				golden.Set.Shards = append(golden.Set.Shards, artifact.Shard{Count: count})
				golden.Set.Count += count
			}
			m := Maker{}
			m.Inputs.Interface.Outputs = []validators.TensorInfo{{Name: "y", Kind: c.kind, DType: tensor.Int64, Shape: []validators.Dim{{Symbol: "batch"}, {Size: c.width}}}}
			got, err := oneAnswer(m, golden)
			if err != nil || len(got) > 1 || len(got) == 1 && got[0] != c.want || len(got) == 0 && c.want != "" {
				t.Errorf("warnings %q (%v), want %q", got, err, c.want)
			}
		})
	}
}
