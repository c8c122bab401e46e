package consistency

import (
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// A case of a model with an input without dimensions is stored like any other.
func TestStoreOfAScalar(t *testing.T) {
	t.Parallel()
	s := &Set{Options: Options{Scratch: t.TempDir()}}
	made := shard{Input: Input{Path: filepath.Join(t.TempDir(), "one.safetensors")}, cases: []slot{{}, {}}}
	gain := tensor.Tensor{DType: tensor.Float32, Data: []byte{0, 0, 128, 63}}
	read := func(slot) (map[string]tensor.Tensor, error) { return map[string]tensor.Tensor{"gain": gain}, nil }
	if err := s.store(made, read, tensor.Stack, 1); err != nil {
		t.Fatal(err)
	}
	got, err := tensorfile.ReadFile(made.Path, tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if shape := got["gain"].Shape; len(shape) != 1 || shape[0] != 2 {
		t.Errorf("shape %v, want [2]", shape)
	}
}
