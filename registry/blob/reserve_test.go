package blob_test

import (
	"math"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/mem"
)

// Uploads end at the reserve, also one that began when there was room; other writes do not.
func TestReserve(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	dir := blob.NewDir(path)
	uploads := blob.NewUploads(dir, mem.New())
	full, plenty := blob.Reserve{Path: path, Bytes: math.MaxInt64}, blob.Reserve{Path: path}
	wantFull := func(what string, err error) {
		t.Helper()
		if !registry.HasCode(err, registry.CodeFull) {
			t.Errorf("%s: error %v, want %s", what, err, registry.CodeFull)
		}
	}
	d := digest.FromString("content")
	wantFull("a blob", full.Blobs(dir).Put(t.Context(), d, 7, strings.NewReader("content")))
	_, err := full.Uploads(uploads).Begin(t.Context(), owner)
	wantFull("an upload", err)
	id, err := plenty.Uploads(uploads).Begin(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	n, err := full.Uploads(uploads).Append(t.Context(), owner, id, 0, strings.NewReader("con"))
	wantFull("the first bytes of an upload", err)
	if n != 0 {
		t.Errorf("%d bytes were received, want none", n)
	}
	if n, err = plenty.Uploads(uploads).Append(t.Context(), owner, id, 0, strings.NewReader("con")); n != 3 || err != nil {
		t.Fatalf("without a reserve: %d bytes, %v; want 3", n, err)
	}
	if n, err = plenty.Uploads(uploads).Append(t.Context(), owner, id, 3, strings.NewReader("tent")); n != 7 || err != nil {
		t.Fatalf("then: %d bytes, %v; want 7", n, err)
	}
	if _, err := full.Uploads(uploads).Finish(t.Context(), owner, id, d); err != nil {
		t.Errorf("an upload that has all its bytes: %v", err)
	}
}

// The default is 5 % of a file system, and at most 1 GiB.
func TestReserveDefault(t *testing.T) {
	t.Parallel()
	free, reserved, err := blob.Reserve{Path: t.TempDir(), Bytes: -1}.Room()
	if err != nil || free < 0 || reserved <= 0 || reserved > 1<<30 {
		t.Errorf("%d bytes are free and %d reserved, %v; want up to 1 GiB reserved", free, reserved, err)
	}
	if _, _, err := (blob.Reserve{Path: "/nowhere"}).Room(); err == nil {
		t.Error("a path that does not exist has room")
	}
	if err := (blob.Reserve{Path: t.TempDir(), Bytes: 0}).Check(math.MaxInt64 / 2); err != nil {
		t.Errorf("without a reserve: %v", err)
	}
}
