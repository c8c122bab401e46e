package tune

import (
	"errors"
	"io/fs"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Cases that vanish before candidates are timed end a tuning, by the error of the file.
func TestLostCasesOfATuning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lost := run.Material{Dir: dir, Set: &artifact.CaseSet{Count: 2, Shards: []artifact.Shard{{File: "lost.safetensors", Count: 2}}}}
	measured := verify.Session{Env: &run.Env{}, Scratch: dir, Fetched: verify.Fetched{Expected: verify.Expected{Cases: lost}}}
	if err := (&tuning{verify: measured}).time(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that the file does not exist", err)
	}
}
