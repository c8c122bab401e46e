package s3_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/s3"
	"mlpromote.dev/mlpromote/registry/storage"
)

func wantEmptyStaging(t testing.TB, b *s3.Bucket) {
	t.Helper()
	left, err := b.Leftovers(t.Context())
	must(t, err)
	if len(left) > 0 {
		t.Errorf("left are %v, want nothing", left)
	}
}

// Uploads that noUpload goes on with are swept, with all that they have in the store, and
// so is what no upload knows of. What is young stays, and what a young upload has.
func TestSweep(t *testing.T) {
	t.Parallel()
	b := open(t, shared, newPrefix(t))
	db := mem.New()
	u := s3.NewUploads(b, db)
	tail, parts := begin(t, u), begin(t, u)
	appendTo(t, u, tail, 0, random(20, 100_000))
	appendTo(t, u, parts, 0, random(21, partBytes+100_000))
	must(t, b.Write(t.Context(), "mlpromote-uploads/"+noUpload+"."+random26))
	must(t, b.Multipart(t.Context(), "blobs/sha256/ab/"+strings.Repeat("ab", 32)))
	foreign := storage.NewUpload(owner)
	foreign.Place = `{"file":"x"}`
	must(t, db.CreateUpload(t.Context(), foreign))

	before, err := b.Leftovers(t.Context())
	must(t, err)
	db.Now = func() time.Time { return time.Now().Add(s3.LeftoverAge - time.Hour) }
	if n, err := u.Sweep(t.Context()); n != 0 || err != nil || len(before) != 5 {
		t.Errorf("swept %d, %v of %v; want nothing of five yet", n, err, before)
	}
	db.Now = func() time.Time { return time.Now().Add(s3.LeftoverAge + time.Hour) }
	b.SetLeftoverAge(-time.Hour)
	touch(t, db, tail)
	if n, err := u.Sweep(t.Context()); n != 6 || err != nil { // two states, two objects, two multipart uploads
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

const (
	noUpload = "0b6a9c1e-5f0d-4c3b-8a77-0123456789ab"
	random26 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// Sweep removes only objects whose keys have exactly the form of an upload's, below its own prefix. Another registry may have a prefix inside this one,
// and other programs their objects.
func TestSweepSparesOthers(t *testing.T) {
	t.Parallel()
	prefix := newPrefix(t)
	b := open(t, shared, prefix)
	other := open(t, shared, prefix+"/staging")
	content := random(22, 1000)
	d := digest.FromBytes(content)
	must(t, other.Put(t.Context(), d, int64(len(content)), bytes.NewReader(content)))
	strange := []string{
		"staging/blobs/sha256/aa/x", "staging/staging/" + noUpload + "/" + random26, "staging/mlpromote-uploads/" + noUpload + "." + random26,
		"staging/" + noUpload + "/" + random26,
		"mlpromote-uploads/notes.txt", "mlpromote-uploads/" + noUpload + "." + random26 + ".bak", "mlpromote-uploads/x/" + noUpload + "." + random26,
	}
	for _, name := range strange {
		must(t, b.Write(t.Context(), name))
	}
	for _, name := range []string{"staging/blobs/sha256/aa/x", "staging/noUpload/" + random26, "blobs/readme"} {
		must(t, b.Multipart(t.Context(), name))
	}
	ours := []string{"mlpromote-uploads/" + noUpload + "." + random26}
	for _, name := range ours {
		must(t, b.Write(t.Context(), name))
	}
	before, err := b.Leftovers(t.Context())
	must(t, err)
	b.SetLeftoverAge(-time.Hour)
	n, err := s3.NewUploads(b, mem.New()).Sweep(t.Context())
	if n != len(ours) || err != nil {
		t.Errorf("swept %d, %v; want %d", n, err, len(ours))
	}
	after, err := b.Leftovers(t.Context())
	must(t, err)
	if len(after) != len(before)-len(ours) {
		t.Errorf("%d objects and multipart uploads are left, want %d: %v", len(after), len(before)-len(ours), after)
	}
	for _, name := range strange {
		if !b.Has(t.Context(), name) {
			t.Errorf("%s was swept", name)
		}
	}
	for _, name := range ours {
		if b.Has(t.Context(), name) {
			t.Errorf("%s was not swept", name)
		}
	}
	blob, _, err := other.Open(t.Context(), d)
	must(t, err)
	must(t, blob.Close())
}

// touch makes an upload one that somebody went on with.
func touch(t *testing.T, db *mem.DB, id string) {
	t.Helper()
	state, err := db.Upload(t.Context(), owner, id)
	must(t, err)
	must(t, db.SwapUpload(t.Context(), state))
}
