package s3_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/s3"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// partBytes is the size of a part, as the package has it.
	partBytes = 16 << 20
	// manyBytes is more than two parts, and no whole number of them.
	manyBytes = 2*partBytes + partBytes/2 + 1
)

var owner = storage.UploadOwner{Repository: "staging/a"}

// random is n bytes that no two seeds share.
func random(seed uint64, n int) []byte {
	content := make([]byte, n)
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	if _, err := source.Read(content); err != nil {
		panic(err) // it has no end
	}
	return content
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code registry.Code) {
	t.Helper()
	if err == nil || registry.CodeOf(err) != code {
		t.Errorf("got error %v (%s), want one with code %s", err, registry.CodeOf(err), code)
	}
}

func begin(t testing.TB, u *s3.Uploads) string {
	t.Helper()
	id, err := u.Begin(t.Context(), owner)
	must(t, err)
	return id
}

func appendTo(t testing.TB, u *s3.Uploads, id string, offset int, content []byte) {
	t.Helper()
	n, err := u.Append(t.Context(), owner, id, int64(offset), bytes.NewReader(content))
	must(t, err)
	if n != int64(offset+len(content)) {
		t.Fatalf("after %d bytes behind %d the upload has %d", len(content), offset, n)
	}
}

func wantBlob(t testing.TB, b *s3.Bucket, d registry.Digest, want []byte) {
	t.Helper()
	blob, size, err := b.Open(t.Context(), d)
	must(t, err)
	defer blob.Close()
	got, err := io.ReadAll(blob)
	must(t, err)
	if !bytes.Equal(got, want) || size != int64(len(want)) {
		t.Fatalf("blob %s has %d bytes and says %d, want the %d that were pushed", d, len(got), size, len(want))
	}
}

func wantNoBlob(t testing.TB, b *s3.Bucket, d registry.Digest) {
	t.Helper()
	_, _, err := b.Open(t.Context(), d)
	wantCode(t, err, registry.CodeNotFound)
}

// Replicas that alternate between pieces shorter and longer than a part.
func TestManyParts(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []digest.Algorithm{digest.SHA256, digest.SHA512} {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			prefix, db := newPrefix(t), mem.New()
			b := open(t, shared, prefix)
			replicas := []*s3.Uploads{s3.NewUploads(b, db), s3.NewUploads(open(t, shared, prefix), db)}
			content := random(1, manyBytes)
			id := begin(t, replicas[0])
			sent := 0
			for i, n := range []int{1, 100_000, 7 << 20, partBytes + 3, 0, 9 << 20, manyBytes} {
				n = min(n, manyBytes-sent)
				appendTo(t, replicas[i%2], id, sent, content[sent:sent+n])
				sent += n
			}
			d := algorithm.FromBytes(content)
			wantNoBlob(t, b, d)
			n, err := replicas[0].Finish(t.Context(), owner, id, d)
			must(t, err)
			if n != manyBytes {
				t.Errorf("it has %d bytes, want %d", n, manyBytes)
			}
			wantBlob(t, b, d, content)
			wantEmptyStaging(t, b)
		})
	}
}

func TestWrongDigestOfManyParts(t *testing.T) {
	t.Parallel()
	content := random(2, manyBytes)
	for _, algorithm := range []digest.Algorithm{digest.SHA256, digest.SHA512} {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			b := open(t, shared, newPrefix(t))
			u := s3.NewUploads(b, mem.New())
			id := begin(t, u)
			appendTo(t, u, id, 0, content)
			wrong := algorithm.FromString("wrong")
			_, err := u.Finish(t.Context(), owner, id, wrong)
			wantCode(t, err, registry.CodeDigest)
			wantNoBlob(t, b, wrong)
			_, err = u.Offset(t.Context(), owner, id)
			wantCode(t, err, registry.CodeNotFound)
			wantEmptyStaging(t, b)
		})
	}
}

func TestPutManyParts(t *testing.T) {
	t.Parallel()
	b := open(t, shared, newPrefix(t))
	content := random(3, manyBytes)
	d := digest.FromBytes(content)
	lost := errors.New("lost")
	for name, c := range map[string]struct {
		r    io.Reader
		code registry.Code
	}{
		"too few":  {bytes.NewReader(content[:manyBytes-1]), registry.CodeDigest},
		"too many": {io.MultiReader(bytes.NewReader(content), strings.NewReader("!")), registry.CodeDigest},
		"wrong":    {io.MultiReader(strings.NewReader("!"), bytes.NewReader(content[1:])), registry.CodeDigest},
		"broken":   {io.MultiReader(bytes.NewReader(content[:partBytes+1]), iotest.ErrReader(lost)), registry.CodeInternal},
	} {
		err := b.Put(t.Context(), d, manyBytes, c.r)
		if registry.CodeOf(err) != c.code || (name == "broken") != errors.Is(err, lost) {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
		wantNoBlob(t, b, d)
		wantEmptyStaging(t, b)
	}
	must(t, b.Put(t.Context(), d, manyBytes, bytes.NewReader(content)))
	wantBlob(t, b, d, content)

	blob, _, err := b.Open(t.Context(), d)
	must(t, err)
	defer blob.Close()
	must(t, iotest.TestReader(io.NewSectionReader(blob, partBytes-50, 100), content[partBytes-50:partBytes+50]))
	for _, at := range []int64{manyBytes - 3, 0, partBytes} {
		_, err := blob.Seek(at, io.SeekStart)
		must(t, err)
		part := make([]byte, 3)
		_, err = io.ReadFull(blob, part)
		must(t, err)
		if !bytes.Equal(part, content[at:at+3]) {
			t.Errorf("at %d: got %x, want %x", at, part, content[at:at+3])
		}
	}
}

// One replica hangs after it has sent a part; the other one goes on from what is
// recorded. The first one cannot spoil what became of the upload.
func TestOvertakeWithParts(t *testing.T) {
	t.Parallel()
	b := open(t, shared, newPrefix(t))
	db := mem.New()
	slow, fast := s3.NewUploads(b, db), s3.NewUploads(b, db)
	id := begin(t, slow)
	first := random(4, 100_000)
	appendTo(t, slow, id, 0, first)

	r, w := io.Pipe()
	hung := make(chan error, 1)
	go func() {
		_, err := slow.Append(t.Context(), owner, id, int64(len(first)), r)
		hung <- err
	}()
	_, err := w.Write(random(5, partBytes)) // more than the first part takes
	must(t, err)
	rest := random(6, manyBytes)
	appendTo(t, fast, id, len(first), rest)
	_, err = w.Write(random(7, 2*partBytes)) // and more parts
	if err == nil {
		err = w.Close()
	}
	must(t, err)
	wantCode(t, <-hung, registry.CodeConflict)

	content := append(bytes.Clone(first), rest...)
	d := digest.FromBytes(content)
	_, err = fast.Finish(t.Context(), owner, id, d)
	must(t, err)
	wantBlob(t, b, d, content)
}

// Digests does not take anything else in the bucket for blobs.
func TestDigestsSkipsStrangers(t *testing.T) {
	t.Parallel()
	prefix := newPrefix(t)
	b := open(t, shared, prefix)
	d := digest.FromString("content")
	must(t, b.Put(t.Context(), d, 7, strings.NewReader("content")))
	u := s3.NewUploads(b, mem.New())
	appendTo(t, u, begin(t, u), 0, random(8, 100_000))
	other := open(t, shared, filepath.Join(prefix, "blobs", "sha256", "zz"))
	must(t, other.Put(t.Context(), d, 7, strings.NewReader("content")))
	var got []registry.Digest
	for d, err := range b.Digests(t.Context()) {
		must(t, err)
		got = append(got, d)
	}
	if len(got) != 1 || got[0] != d {
		t.Errorf("got %v, want %s", got, d)
	}
}
