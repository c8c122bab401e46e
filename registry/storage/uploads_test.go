package storage_test

import (
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"hash"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// However often a hash is put down and taken up again, it is that of all the bytes.
func TestUploadStateSum(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		pieces := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 200)).Draw(r, "pieces")
		state := storage.NewUpload(storage.UploadOwner{Repository: "staging/a"})
		var all []byte
		for _, piece := range pieces {
			sum, err := state.Sum()
			if err != nil {
				t.Fatal(err)
			}
			sum.Write(piece)
			all = append(all, piece...)
			if state, err = state.Advanced(int64(len(all)), sum); err != nil {
				t.Fatal(err)
			}
		}
		sum, err := state.Sum()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprintf("%x", sum.Sum(nil)), fmt.Sprintf("%x", sha256.Sum256(all)); got != want || state.Offset != int64(len(all)) {
			t.Fatalf("got %s of %d bytes, want %s of %d", got, state.Offset, want, len(all))
		}
	})
}

// unsaved is a hash whose state cannot be saved.
type unsaved struct{ hash.Hash }

func TestUploadStateUnsaved(t *testing.T) {
	t.Parallel()
	if s, err := (storage.UploadState{}).Advanced(3, unsaved{sha256.New()}); registry.CodeOf(err) != registry.CodeInternal {
		t.Errorf("got %+v, error %v; want CodeInternal", s, err)
	}
}

func TestUploadStateDamaged(t *testing.T) {
	t.Parallel()
	other, err := storage.UploadState{}.Advanced(3, md5.New())
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]storage.UploadState{
		"no state":         {Offset: 3},
		"no state of ours": {Offset: 3, Hash: []byte("sha")},
		"another hash":     other,
	} {
		if sum, err := s.Sum(); sum != nil || registry.CodeOf(err) != registry.CodeInternal {
			t.Errorf("%s: got %v, %v; want CodeInternal", name, sum, err)
		}
	}
}
