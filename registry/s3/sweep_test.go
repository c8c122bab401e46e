package s3_test

import (
	"slices"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/s3"

	"github.com/opencontainers/go-digest"
)

func wantEmptyStaging(t testing.TB, b *s3.Bucket) {
	t.Helper()
	left, err := b.Leftovers(t.Context())
	must(t, err)
	if len(left) > 0 {
		t.Errorf("left are %v, want nothing", left)
	}
}

// Uploads that nobody goes on with are swept, with all that they have in the store, and
// so is what no upload knows of. What is young stays, and what a young upload has.
func TestSweep(t *testing.T) {
	t.Parallel()
	b := open(t, shared, newPrefix(t))
	db := mem.New()
	u := s3.NewUploads(b, db)
	tail, parts := begin(t, u), begin(t, u)
	appendTo(t, u, tail, 0, random(20, 100_000))
	appendTo(t, u, parts, 0, random(21, partBytes+100_000))
	must(t, b.Write(t.Context(), "nobody/x"))
	must(t, b.Multipart(t.Context(), "sha256/00/00"))
	foreign := registry.NewUpload(owner, time.Now())
	foreign.Place = `{"file":"x"}`
	must(t, db.CreateUpload(t.Context(), foreign))

	before, err := b.Leftovers(t.Context())
	must(t, err)
	if n, err := u.Sweep(t.Context(), time.Now().Add(s3.LeftoverAge-time.Hour)); n != 0 || err != nil || len(before) != 5 {
		t.Errorf("swept %d, %v of %v; want nothing of five yet", n, err, before)
	}
	now := time.Now().Add(s3.LeftoverAge + time.Hour)
	touch(t, db, tail, now)
	if n, err := u.Sweep(t.Context(), now); n != 6 || err != nil { // two states, two objects, two multipart uploads
		t.Errorf("swept %d, %v; want 6", n, err)
	}
	after, err := b.Leftovers(t.Context())
	must(t, err)
	if len(after) != 1 || !slices.Contains(before, after[0]) {
		t.Errorf("left are %v, want the tail of the upload that somebody goes on with", after)
	}
	_, err = u.Offset(t.Context(), owner, parts)
	wantCode(t, err, registry.CodeNotFound)
	_, err = u.Finish(t.Context(), owner, tail, digest.FromBytes(random(20, 100_000)))
	must(t, err)
	wantEmptyStaging(t, b)
}

// touch makes an upload one that somebody went on with.
func touch(t *testing.T, db *mem.DB, id string, now time.Time) {
	t.Helper()
	state, err := db.Upload(t.Context(), owner, id)
	must(t, err)
	state.Touched = now
	must(t, db.SwapUpload(t.Context(), state))
}
