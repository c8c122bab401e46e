package s3_test

import (
	"crypto/sha256"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/s3"
)

const (
	streamedBytes = 64 << 20
	largeBytes    = 600 << 20 // with MLPROMOTE_LARGE

	// allocated is how much more a stream may allocate than one of half its length: one
	// buffer, which the race detector forgets at random, and the work of the requests. It
	// is less than half the blob.
	allocated = 24 << 20
)

// TestLarge streams a blob in and out. What is allocated does not grow with it. It runs
// before the tests that are parallel, whose memory it would count.
func TestLarge(t *testing.T) {
	newPrefix(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would take buffers away that are used again
	size := int64(streamedBytes)
	if os.Getenv("MLPROMOTE_LARGE") != "" {
		size = largeBytes
	}
	b := open(t, shared, newPrefix(t))
	u := s3.NewUploads(b, mem.New())
	stream(t, b, u, 2*16<<20) // so that buffers and connections are there
	half, _ := stream(t, b, u, size/2)
	whole, took := stream(t, b, u, size)
	t.Logf("%d MiB in %v, %.0f MiB/s in and out together; allocated %d KiB, and %d KiB for half of it",
		size>>20, took, float64(2*size>>20)/took.Seconds(), whole>>10, half>>10)
	if int64(whole)-int64(half) > allocated {
		t.Errorf("a blob of %d MiB took %d KiB and half of it %d KiB, want about as much", size>>20, whole>>10, half>>10)
	}
}

// stream pushes a blob of so many bytes by an upload, copies it in pieces, reads it, and
// gives what that allocated and took.
func stream(t *testing.T, b *s3.Bucket, u *s3.Uploads, size int64) (uint64, time.Duration) {
	t.Helper()
	b.SetCopyBytes(24 << 20) // so that all ways of large blobs are gone
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	id := begin(t, u)
	sum := sha256.New()
	_, err := u.Append(t.Context(), owner, id, 0, &noise{random: rand.New(rand.NewPCG(uint64(size), 1)), left: size, sum: sum})
	must(t, err)
	d := digest.NewDigest(digest.SHA256, sum)
	n, err := u.Finish(t.Context(), owner, id, d)
	must(t, err)
	if n != size || digestOf(t, b, d) != d {
		t.Errorf("of %d bytes %d are there, or others", size, n)
	}
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	must(t, b.Delete(t.Context(), d))
	return after.TotalAlloc - before.TotalAlloc, took
}

func digestOf(t *testing.T, b *s3.Bucket, d registry.Digest) registry.Digest {
	t.Helper()
	blob, _, err := b.Open(t.Context(), d)
	must(t, err)
	defer blob.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, blob)
	must(t, err)
	return digest.NewDigest(digest.SHA256, sum)
}

// noise is bytes that were never in memory together.
type noise struct {
	random *rand.Rand
	left   int64
	sum    hash.Hash
}

func (n *noise) Read(p []byte) (int, error) {
	if n.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), n.left, 256<<10)]
	for i := 0; i < len(p); i += 8 {
		word := n.random.Uint64()
		for j := i; j < min(i+8, len(p)); j++ {
			p[j] = byte(word)
			word >>= 8
		}
	}
	n.left -= int64(len(p))
	n.sum.Write(p)
	return len(p), nil
}
