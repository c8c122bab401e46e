package consistency_test

import (
	"path/filepath"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Batches without rows can be cases. They are not stacked.
func TestEmptyBatches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x, err := tensor.New([]float32{}, 3, 0, 4)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "a"), map[string]tensor.Tensor{"x": x})
	i := openDims()
	i.Dims["batch"] = validators.DimRange{Min: 0, Opt: 1, Max: 16}
	set, err := consistency.New(consistency.Options{Interface: i, Dir: dir, Shards: []artifact.Shard{{File: "a", Count: 3}},
		Scratch: t.TempDir(), Budget: time.Minute, Run: time.Millisecond})
	if err != nil || set == nil {
		t.Errorf("error %v, want a set", err)
	}
}
