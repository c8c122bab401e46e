package registrytest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Replica is one process's access to storage that several processes share.
type Replica struct {
	Uploads storage.Uploads
	Blobs   storage.Blobs
}

// TestReplicas is what [storage.Uploads] of two processes promise about each other.
func TestReplicas(t *testing.T, open func(t *testing.T) [2]Replica) {
	for name, test := range map[string]func(*testing.T, [2]Replica){
		"alternate":              testReplicasAlternate,
		"go on after a failure":  testReplicasResume,
		"one overtakes":          testReplicasOvertake,
		"finish at once":         testReplicasFinish,
		"append during a finish": testReplicasAppendAndFinish,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// random is n bytes that no two seeds share.
func random(seed uint64, n int) string {
	content := make([]byte, n)
	source := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // only contents
	for i := range content {
		content[i] = byte(source.Uint32())
	}
	return string(content)
}

func testReplicasAlternate(t *testing.T, r [2]Replica) {
	id := beginUpload(t, r[0].Uploads)
	content := random(1, 1<<20)
	lengths := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // only lengths
	for i, sent := 0, 0; sent < len(content); i++ {
		n := min(lengths.IntN(100<<10), len(content)-sent)
		wantOffset(t, r[(i+1)%2].Uploads, id, int64(sent))
		wantAppend(t, r[i%2].Uploads, id, int64(sent), content[sent:sent+n])
		sent += n
	}
	wantFinish(t, r[1].Uploads, r[0].Blobs, id, content)
	wantNoUpload(t, r[0].Uploads, uploader, id)
	wantBlob(t, r[1].Blobs, d(content), []byte(content))
}

// What one replica had when its client went away is where another one goes on.
func testReplicasResume(t *testing.T, r [2]Replica) {
	id := beginUpload(t, r[0].Uploads)
	content := random(2, 500_000)
	lost := errors.New("lost")
	ctx, gone := context.WithCancel(t.Context())
	cut := io.MultiReader(strings.NewReader(content[:300_000]), readerFunc(func([]byte) (int, error) {
		gone() // as a request's context is
		return 0, lost
	}))
	n, err := r[0].Uploads.Append(ctx, uploader, id, 0, iotest.HalfReader(cut))
	if !errors.Is(err, lost) || n != 300_000 {
		t.Errorf("got %d, %v; want 300000 bytes and the reader's error", n, err)
	}
	wantOffset(t, r[1].Uploads, id, 300_000)
	wantAppend(t, r[1].Uploads, id, 300_000, content[300_000:])
	wantFinish(t, r[0].Uploads, r[1].Blobs, id, content)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// While one replica hangs in the middle of a chunk, the other one is asked to take the
// same chunk. It refuses, or it takes over; of the two, one succeeds, with its bytes.
func testReplicasOvertake(t *testing.T, r [2]Replica) {
	id := beginUpload(t, r[0].Uploads)
	wantAppend(t, r[0].Uploads, id, 0, "first ")
	pipe, hang := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := r[0].Uploads.Append(t.Context(), uploader, id, 6, pipe)
		done <- err
	}()
	_, err := hang.Write([]byte("slow")) // returns when it was read, so Append is at work
	must(t, err)
	_, fast := r[1].Uploads.Append(t.Context(), uploader, id, 6, strings.NewReader("fast one"))
	_, err = hang.Write([]byte(" one"))
	must(t, err)
	must(t, hang.Close())
	slow := <-done
	content := "first slow one"
	loser := fast
	if fast == nil {
		content, loser = "first fast one", slow
	} else {
		must(t, slow)
	}
	wantCode(t, loser, registry.CodeConflict)
	wantOffset(t, r[0].Uploads, id, 14)
	wantFinish(t, r[0].Uploads, r[1].Blobs, id, content)
}

// Of two that finish at once, one may be told that the upload is gone. The blob is there.
func testReplicasFinish(t *testing.T, r [2]Replica) {
	for i := range 8 {
		id := beginUpload(t, r[0].Uploads)
		content := random(uint64(10+i), 70_000)
		wantAppend(t, r[i%2].Uploads, id, 0, content)
		done := make(chan error, 2)
		for _, replica := range r {
			go func() {
				_, err := replica.Uploads.Finish(t.Context(), uploader, id, d(content))
				done <- err
			}()
		}
		succeeded := 0
		for range r {
			switch err := <-done; {
			case err == nil:
				succeeded++
			case !registry.HasCode(err, registry.CodeNotFound) && !registry.HasCode(err, registry.CodeConflict):
				t.Errorf("got %v, want CodeNotFound or CodeConflict", err)
			}
		}
		if succeeded == 0 {
			t.Error("nobody finished the upload")
		}
		wantBlob(t, r[0].Blobs, d(content), []byte(content))
		wantNoUpload(t, r[1].Uploads, uploader, id)
	}
}

// A chunk that comes while another replica finishes never gets into the blob.
func testReplicasAppendAndFinish(t *testing.T, r [2]Replica) {
	for i := range 8 {
		id := beginUpload(t, r[0].Uploads)
		content := random(uint64(30+i), 70_000)
		wantAppend(t, r[0].Uploads, id, 0, content)
		appended := make(chan error, 1)
		go func() {
			_, err := r[1].Uploads.Append(t.Context(), uploader, id, int64(len(content)), bytes.NewReader(make([]byte, 50_000)))
			appended <- err
		}()
		_, err := r[0].Uploads.Finish(t.Context(), uploader, id, d(content))
		late := <-appended
		switch registry.CodeOf(err) {
		case registry.CodeDigest, registry.CodeConflict: // the chunk came first
		default:
			must(t, err)
		}
		if err == nil {
			wantBlob(t, r[1].Blobs, d(content), []byte(content))
			if late == nil {
				t.Error("a chunk was taken by an upload that had ended")
			}
		}
	}
}
