//go:build cgo

package pipeline_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// manyCases gives the world 40 cases.
func (w *world) manyCases(t *testing.T) {
	t.Helper()
	x := make([]float32, 40)
	for i := range x {
		x[i] = float32(i) - 7
	}
	writeCases(t, filepath.Join(w.dir, "cases", "cases-00000.safetensors"), x)
}

// A large model runs chunk by chunk: 16 cases first, to see what one takes. What ran before an interruption is
// not run again.
func TestVerifyInChunks(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.manyCases(t)
	w.p.ChunkFrom = 1
	w.p.Unfinished = t.TempDir()
	built := w.built(t, onlyFP32, build.Options{})
	var chunks []bool // that ran: whether each asked for the shares of providers
	failing := registry.Errorf(registry.CodeUnavailable, "%w", &toolchain.Failure{Subject: toolchain.Subject{Shard: "cases-00000.safetensors", Case: new(3)}, Err: errors.New("killed")})
	w.run = func(job toolchain.Job, _ string) error {
		if job.Run.Order == toolchain.OrderInterleaved || checksConsistency(job) || onGolden(job) {
			return nil
		}
		if chunks = append(chunks, job.Run.Shares); len(chunks) == 2 {
			return failing
		}
		return nil
	}
	_, err := verify.Verify(t.Context(), w.p, built.Ref)
	hints := strings.Join(registry.Hints(err), "\n")
	if registry.CodeOf(err) != registry.CodeUnavailable ||
		!strings.Contains(hints, "had run 16 of 40 cases") || !strings.Contains(hints, "counted from case 16: it is case 19 of the release") {
		t.Errorf("error %v with hints %q, want that of the driver after 16 of 40 cases", err, hints)
	}
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if want := []bool{true, false, false}; !slices.Equal(chunks, want) {
		t.Errorf("chunks %v, want %v: the first once, the second twice", chunks, want)
	}
	if cases := verified.Engines[0].Parity.Cases; cases.Ran != 40 || cases.Earlier != 16 {
		t.Errorf("%d cases, %d of them earlier; want 40 and 16", cases.Ran, cases.Earlier)
	}
}

// Outputs whose beginning cannot be read are not taken over: nothing says which events their verifier could see.
func TestVerifyInChunksWithoutItsBeginning(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.manyCases(t)
	w.p.ChunkFrom = 1
	w.p.Unfinished = t.TempDir()
	built := w.built(t, onlyFP32, build.Options{})
	runs := 0
	w.run = func(job toolchain.Job, _ string) error {
		if job.Run.Order == toolchain.OrderInterleaved || checksConsistency(job) {
			return nil
		}
		if runs++; runs == 2 {
			return registry.Errorf(registry.CodeUnavailable, "killed")
		}
		return nil
	}
	if _, err := verify.Verify(t.Context(), w.p, built.Ref); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Fatalf("error %v, want that of the second chunk", err)
	}
	began, err := filepath.Glob(filepath.Join(w.p.Unfinished, "*", "began.json"))
	if err != nil || len(began) != 1 {
		t.Fatalf("%q, error %v; want the beginning of one verification", began, err)
	}
	if err := os.WriteFile(began[0], []byte("cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if cases := verified.Engines[0].Parity.Cases; cases.Ran != 40 || cases.Earlier != 0 {
		t.Errorf("%d cases, %d of them earlier; want 40 that all ran now", cases.Ran, cases.Earlier)
	}
}

// A failure in the first chunk says nothing of cases before it.
func TestVerifyInChunksFailsAtOnce(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.manyCases(t)
	w.p.ChunkFrom = 1
	w.p.Unfinished = t.TempDir()
	built := w.built(t, onlyFP32, build.Options{})
	w.run = func(toolchain.Job, string) error {
		return registry.Errorf(registry.CodeUnavailable, "x: case 3: killed")
	}
	_, err := verify.Verify(t.Context(), w.p, built.Ref)
	if hints := registry.Hints(err); registry.CodeOf(err) != registry.CodeUnavailable || len(hints) != 0 {
		t.Errorf("error %v with hints %q, want that of the driver alone", err, hints)
	}
}

// However a set is cut into chunks, the pieces are all its rows once, in order, and put together again they are
// the shards that they were cut from.
func TestChunksPutTogether(t *testing.T) {
	t.Parallel()
	shards := []artifact.Shard{{File: "cases-00000.safetensors", First: 0, Count: 5},
		{File: "cases-00001.safetensors", First: 5, Count: 1}, {File: "cases-00002.safetensors", First: 6, Count: 4}}
	for size := 1; size <= 11; size++ {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, s := range shards {
				var data []byte
				for row := range s.Count {
					data = append(data, byte(s.First+row), byte(s.Count))
				}
				writeTensors(t, filepath.Join(dir, s.File), map[string]tensor.Tensor{
					"x":       {DType: "uint8", Shape: []int64{int64(s.Count), 2}, Data: data},
					"one":     {DType: "uint8", Shape: []int64{}, Data: []byte{1}},
					"another": {DType: "uint8", Shape: []int64{17}, Data: make([]byte, 17)}, // about no cases
				})
			}
			got, err := cutAndJoin(shards, dir, t.TempDir(), size)
			if err != nil {
				t.Fatal(err)
			}
			var want []byte
			for _, s := range shards {
				for row := range s.Count {
					want = append(want, byte(s.First+row), byte(s.Count))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("rows %v, want %v", got, want)
			}
		})
	}
}

func writeTensors(t *testing.T, path string, tensors map[string]tensor.Tensor) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tensorfile.Write(f, tensors, nil); err != nil {
		t.Fatal(err)
	}
}
