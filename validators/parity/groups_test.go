package parity_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// grouped are 80 cases in two shards with a category, a table with a flag and a number, a text, and a number that no two cases share. The
// engine's risk is always 0 for category 3.
func grouped(t *testing.T) parity.Run {
	t.Helper()
	const n, half = 80, 40
	var golden, engine, cases []map[string]tensor.Tensor
	var list []artifact.Shard
	for s := range 2 {
		var risk, wrong, table []float32
		var category []int64
		var text []string
		for i := s * half; i < (s+1)*half; i++ {
			r := float32(0.5 + math.Sin(float64(i))/4)
			risk, category, text = append(risk, r), append(category, int64(i%4)), append(text, fmt.Sprint("country ", i%2))
			table = append(table, float32(i%2), float32(i))
			if i%4 == 3 {
				r = 0
			}
			wrong = append(wrong, r)
		}
		texts, err := tensor.PackText(text, half, 1)
		if err != nil {
			t.Fatal(err)
		}
		golden = append(golden, map[string]tensor.Tensor{"risk": array(t, []int64{half, 1}, risk...)})
		engine = append(engine, map[string]tensor.Tensor{"risk": array(t, []int64{half, 1}, wrong...)})
		cases = append(cases, map[string]tensor.Tensor{"category": array(t, []int64{half}, category...), "table": array(t, []int64{half, 2}, table...),
			"country": texts, "long": array(t, []int64{half, 65}, make([]float32, half*65)...)})
		list = append(list, artifact.Shard{File: string(rune('a'+s)) + ".safetensors", First: s * half, Count: half})
	}
	return parity.Run{Golden: shards(t, golden...), Engine: shards(t, engine...), Shards: list,
		Outputs: map[string]tensor.Options{"risk": {}},
		Groups:  parity.Groups{Dir: shards(t, cases...), Shards: list, Tensors: []string{"category", "table", "country", "long", "missing"}, Texts: []string{"country"}}}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	run := grouped(t)
	found, err := parity.Compare(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	want := &tensor.Groups{By: []string{"category", "table[0]", "country"}, Count: 1 + 4 + 2 + 2, Lost: 1,
		Worst: tensor.LostGroup{By: "category", Value: "3", Cases: 20, Index: -1}}
	if diff := cmp.Diff(want, found.Outputs["risk"].Groups); diff != "" {
		t.Errorf("groups, wanted with -:\n%s", diff)
	}
	if got := parity.Figures("float32", found.Outputs["risk"]).Groups; got.Count != 9 || got.Lost != 1 || len(got.By) != 3 {
		t.Errorf("groups of the report: %+v", got)
	}
	run.Groups = parity.Groups{}
	if found, err = parity.Compare(t.Context(), run); err != nil || found.Outputs["risk"].Groups != nil {
		t.Errorf("groups %+v without anything to group by, %v", found.Outputs["risk"].Groups, err)
	}
	run = grouped(t)
	run.Groups.Dir = t.TempDir()
	if _, err := parity.Compare(t.Context(), run); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v without cases", err)
	}
}

// Detections are compared by overlap, in any order, and the result is that of each output that has a part of them.
func TestDetections(t *testing.T) {
	t.Parallel()
	side := func(boxes, scores []float32, classes []int64) string {
		n := int64(len(scores) / 2)
		return shards(t, map[string]tensor.Tensor{"boxes": array(t, []int64{2, n, 4}, boxes...),
			"scores": array(t, []int64{2, n}, scores...), "classes": array(t, []int64{2, n}, classes...)})
	}
	golden := side([]float32{0, 0, 9, 9, 20, 20, 29, 29, 0, 0, 9, 9, 0, 0, 0, 0}, []float32{0.9, 0.8, 0.9, 0}, []int64{1, 2, 1, 0})
	turned := side([]float32{20, 20, 29, 29, 0, 0, 9, 9, 0, 0, 9, 9, 0, 0, 0, 0}, []float32{0.8, 0.9, 0.9, 0}, []int64{2, 1, 1, 0})
	other := side([]float32{20, 20, 29, 29, 0, 0, 9, 9, 0, 0, 9, 9, 0, 0, 0, 0}, []float32{0.8, 0.9, 0.9, 0}, []int64{2, 1, 5, 0})
	of := accuracy.DetectionOutputs{Detections: accuracy.Detections{Boxes: "boxes", Scores: "scores", Classes: "classes"}}
	for name, c := range map[string]struct {
		engine string
		of     accuracy.DetectionOutputs
		misses float64
		cases  int
		copies map[int]bool
	}{
		"another order":    {turned, of, 0, 2, nil},
		"another class":    {other, of, 1, 2, nil},
		"of a copy":        {other, of, 0, 1, map[int]bool{1: true}},
		"without classes":  {other, accuracy.DetectionOutputs{Detections: accuracy.Detections{Boxes: "boxes", Scores: "scores"}}, 0, 2, nil},
		"nothing declared": {other, accuracy.DetectionOutputs{}, 0, 0, nil},
	} {
		found, err := parity.Compare(t.Context(), parity.Run{Golden: golden, Engine: c.engine, Shards: []artifact.Shard{{File: "a.safetensors", Count: 2}},
			Outputs: map[string]tensor.Options{"boxes": {}, "scores": {}, "classes": {}}, Detections: c.of, Copies: c.copies})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, output := range []string{"boxes", "scores"} {
			if r := found.Outputs[output]; math.Abs(r.DetectionMisses-c.misses) > 1e-9 || r.DetectionCases != c.cases {
				t.Errorf("%s, %s: %v misses in %d cases, want %v in %d", name, output, r.DetectionMisses, r.DetectionCases, c.misses, c.cases)
			}
		}
	}
}
