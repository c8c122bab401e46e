package run

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// seeing is a runner that notes the tensors of the cases that it gets.
type seeing struct {
	toolchain.Driver
	seen map[string]tensor.Tensor
}

func (s *seeing) Do(_ context.Context, job toolchain.Job, _ string) (toolchain.Outcome, error) {
	var err error
	for _, in := range job.Inputs {
		if in.Role == toolchain.RoleCases {
			s.seen, err = tensorfile.ReadFile(in.Path, tensorfile.Limits{})
		}
	}
	return toolchain.Outcome{Result: json.RawMessage(`{"cases": 2, "engines": [{"id": "a", "timings_ns": [1, 1]}]}`)}, err
}

// A user's own program gets the inputs of the cases, and nothing that it could answer in place of computing.
func TestRunnersSeeNoAnswers(t *testing.T) {
	t.Parallel()
	image := tensor.Tensor{DType: tensor.Float32, Shape: []int64{2, 1}, Data: []byte{1, 2, 3, 4, 5, 6, 7, 8}}
	path := filepath.Join(t.TempDir(), "cases.safetensors")
	if err := cases.WriteShard(path, map[string]tensor.Tensor{"image": image, "class": image, "expected:logits": image, "served:logits": image, "label": image}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		own    bool
		labels string
		want   []string
	}{
		"one of ours":             {false, "class", []string{"class", "expected:logits", "image", "label", "served:logits"}},
		"a user's":                {true, "class", []string{"image", "label"}},
		"a user's without labels": {true, "", []string{"class", "image", "label"}},
	} {
		shard, err := toolchain.FileInput(toolchain.RoleCases, "cases.safetensors", path)
		if err != nil {
			t.Fatal(err)
		}
		driver := new(seeing)
		tool := Tool{Labels: c.labels}
		tool.Timing, tool.Profile.OwnRunner = driver, c.own
		r := Tool{Toolchain: tool.Toolchain}.Run(toolchain.RunOptions{})
		r.Job.Inputs = []toolchain.Input{shard}
		r.AddCandidate(Candidate{ID: "a", Tool: tool})
		if _, err := r.Do(t.Context(), t.TempDir()); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(driver.seen)); !slices.Equal(got, c.want) || !slices.Equal(driver.seen["image"].Data, image.Data) {
			t.Errorf("%s sees %q, want %q", name, got, c.want)
		}
	}
}
