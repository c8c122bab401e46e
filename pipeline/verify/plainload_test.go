package verify

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Cases that vanish before an engine is loaded with them end the step, by the error of the file.
func TestLostCasesOfALoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lost := run.Material{Dir: dir, Set: &artifact.CaseSet{Count: 2, Shards: []artifact.Shard{{File: "lost.safetensors", Count: 2}}}}
	v := Session{Env: &run.Env{}, Scratch: dir, Fetched: Fetched{Expected: Expected{Cases: lost}}}
	if _, err := plainLoad(t.Context(), v, run.Candidate{}, &extra{}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that the file does not exist", err)
	}
}

// Cases that cannot be written where an engine is to read them end the plain load, whichever of the two files it is.
func TestPlainLoadOfHalf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x, err := tensor.New([]float32{1, 2}, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	const shard = "cases.safetensors"
	if err := cases.WriteShard(filepath.Join(dir, shard), map[string]tensor.Tensor{"x": x}); err != nil {
		t.Fatal(err)
	}
	set := &artifact.CaseSet{Count: 2, Shards: []artifact.Shard{{File: shard, Count: 2}}}
	v := Session{Env: &run.Env{}, Scratch: t.TempDir(), Fetched: Fetched{Expected: Expected{Cases: run.Material{Dir: dir, Set: set}, Golden: run.Material{Dir: t.TempDir(), Set: set}}}}
	if load, err := plainLoad(t.Context(), v, run.Candidate{}, &extra{}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("load %+v, error %v; want that the golden outputs do not exist", load, err)
	}
}
