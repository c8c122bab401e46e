package registrytest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// OpenUploads makes new uploads, and the store that they end in, which a test can damage.
type OpenUploads func(t *testing.T) (storage.Uploads, storage.Blobs, Damage)

// TestUploads is the contract of [storage.Uploads].
func TestUploads(t *testing.T, open OpenUploads) {
	for name, test := range map[string]func(*testing.T, storage.Uploads, storage.Blobs){
		"pieces become a blob":         testUploadsPieces,
		"empty blob":                   testUploadsEmpty,
		"sha512":                       testUploadsSHA512,
		"blob that is there already":   testUploadsAgain,
		"belongs to its owner":         testUploadsOwner,
		"no such upload":               testUploadsUnknown,
		"wrong offset":                 testUploadsOffset,
		"reader that fails":            testUploadsReaderFails,
		"wrong digest":                 testUploadsWrongDigest,
		"malformed digest":             testUploadsMalformed,
		"not visible before the end":   testUploadsInvisible,
		"one writer at a time":         testUploadsOneWriter,
		"cancelled":                    testUploadsCancel,
		"many writers, one gets ahead": testUploadsRace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uploads, blobs, _ := open(t)
			test(t, uploads, blobs)
		})
	}
	t.Run("blob that is there and damaged", func(t *testing.T) {
		t.Parallel()
		uploads, blobs, damage := open(t)
		testUploadsRepair(t, uploads, blobs, damage)
	})
}

// An upload replaces damaged bytes of any size, however many pieces it has.
func testUploadsRepair(t *testing.T, uploads storage.Uploads, blobs storage.Blobs, damage Damage) {
	for _, content := range []string{"small", strings.Repeat("large", storage.CheckedBytes)} {
		put(t, blobs, content)
		damage(t, d(content))
		id, half := beginUpload(t, uploads), len(content)/2
		wantAppend(t, uploads, id, 0, content[:half])
		wantAppend(t, uploads, id, int64(half), content[half:])
		wantFinish(t, uploads, blobs, id, content)
	}
}

var uploader = storage.UploadOwner{Repository: "staging/a"} // of most uploads here

func beginUpload(t *testing.T, uploads storage.Uploads) string {
	t.Helper()
	id, err := uploads.Begin(t.Context(), uploader)
	must(t, err)
	return id
}

func wantAppend(t *testing.T, uploads storage.Uploads, id string, offset int64, content string) {
	t.Helper()
	n, err := uploads.Append(t.Context(), uploader, id, offset, strings.NewReader(content))
	must(t, err)
	wantEqual(t, n, offset+int64(len(content)))
}

func wantOffset(t *testing.T, uploads storage.Uploads, id string, want int64) {
	t.Helper()
	n, err := uploads.Offset(t.Context(), uploader, id)
	must(t, err)
	wantEqual(t, n, want)
}

func wantFinish(t *testing.T, uploads storage.Uploads, blobs storage.Blobs, id, content string) {
	t.Helper()
	n, err := uploads.Finish(t.Context(), uploader, id, d(content))
	must(t, err)
	wantEqual(t, n, int64(len(content)))
	wantBlob(t, blobs, d(content), []byte(content))
	wantNoUpload(t, uploads, uploader, id)
}

func wantNoUpload(t *testing.T, uploads storage.Uploads, owner storage.UploadOwner, id string) {
	t.Helper()
	_, err := uploads.Offset(t.Context(), owner, id)
	wantCode(t, err, registry.CodeNotFound)
	_, err = uploads.Append(t.Context(), owner, id, 0, strings.NewReader("x"))
	wantCode(t, err, registry.CodeNotFound)
	_, err = uploads.Finish(t.Context(), owner, id, d(""))
	wantCode(t, err, registry.CodeNotFound)
}

func testUploadsPieces(t *testing.T, uploads storage.Uploads, blobs storage.Blobs) {
	id, other := beginUpload(t, uploads), beginUpload(t, uploads)
	if id == other {
		t.Fatalf("two uploads are called %s", id)
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // only lengths
	content := strings.Repeat("0123456789abcdef", 1<<16)
	for sent := 0; sent < len(content); {
		wantOffset(t, uploads, id, int64(sent))
		n := min(random.IntN(300<<10), len(content)-sent)
		wantAppend(t, uploads, id, int64(sent), content[sent:sent+n])
		sent += n
	}
	wantAppend(t, uploads, other, 0, "other")
	wantFinish(t, uploads, blobs, id, content)
	wantFinish(t, uploads, blobs, other, "other")
}

func testUploadsEmpty(t *testing.T, uploads storage.Uploads, blobs storage.Blobs) {
	id := beginUpload(t, uploads)
	wantOffset(t, uploads, id, 0)
	wantFinish(t, uploads, blobs, id, "")
}

func testUploadsSHA512(t *testing.T, uploads storage.Uploads, blobs storage.Blobs) {
	id := beginUpload(t, uploads)
	wantAppend(t, uploads, id, 0, "content")
	d := digest.SHA512.FromString("content")
	_, err := uploads.Finish(t.Context(), uploader, id, d)
	must(t, err)
	wantBlob(t, blobs, d, []byte("content"))
}

func testUploadsAgain(t *testing.T, uploads storage.Uploads, blobs storage.Blobs) {
	put(t, blobs, "content")
	id := beginUpload(t, uploads)
	wantAppend(t, uploads, id, 0, "content")
	wantFinish(t, uploads, blobs, id, "content")
}

func testUploadsOwner(t *testing.T, uploads storage.Uploads, blobs storage.Blobs) {
	for _, owner := range []storage.UploadOwner{uploader, alice} {
		id, err := uploads.Begin(t.Context(), owner)
		must(t, err)
		for _, stranger := range []storage.UploadOwner{
			uploader, alice, {Repository: "staging/a", Principal: "bob"}, {Repository: "staging/b", Principal: "alice"},
			{Repository: "staging/b"}, {Repository: "staging"}, {}, {Repository: "staging/a/b"}, {Principal: "staging/a"},
		} {
			if stranger != owner {
				wantNoUpload(t, uploads, stranger, id)
			}
		}
		n, err := uploads.Append(t.Context(), owner, id, 0, strings.NewReader("x"))
		must(t, err)
		wantEqual(t, n, int64(1))
		_, err = uploads.Finish(t.Context(), owner, id, d("x"))
		must(t, err)
		wantBlob(t, blobs, d("x"), []byte("x"))
	}
}

func testUploadsUnknown(t *testing.T, uploads storage.Uploads, _ storage.Blobs) {
	for _, id := range []string{"", ".", "..", "../x", "none", "a/b", "\x00", strings.Repeat("a", 5000), "0b9f9a5c-3f0a-4c59-9a56-3e6d1a3c5d10"} {
		wantNoUpload(t, uploads, uploader, id)
	}
}

func testUploadsOffset(t *testing.T, uploads storage.Uploads, blobs storage.Blobs) {
	id := beginUpload(t, uploads)
	wantAppend(t, uploads, id, 0, "con")
	for _, wrong := range []int64{0, 2, 4, -1} {
		_, err := uploads.Append(t.Context(), uploader, id, wrong, strings.NewReader("tent"))
		wantCode(t, err, registry.CodeConflict)
	}
	wantOffset(t, uploads, id, 3)
	wantAppend(t, uploads, id, 3, "tent")
	wantFinish(t, uploads, blobs, id, "content")
}

// What came before a reader failed counts, and the upload goes on behind it.
func testUploadsReaderFails(t *testing.T, uploads storage.Uploads, blobs storage.Blobs) {
	id := beginUpload(t, uploads)
	lost := errors.New("lost")
	n, err := uploads.Append(t.Context(), uploader, id, 0, io.MultiReader(strings.NewReader("con"), iotest.ErrReader(lost)))
	if !errors.Is(err, lost) {
		t.Errorf("got error %v, want the reader's", err)
	}
	wantEqual(t, n, int64(3))
	wantOffset(t, uploads, id, 3)
	wantAppend(t, uploads, id, 3, "tent")
	wantFinish(t, uploads, blobs, id, "content")
}

func testUploadsWrongDigest(t *testing.T, uploads storage.Uploads, blobs storage.Blobs) {
	id := beginUpload(t, uploads)
	wantAppend(t, uploads, id, 0, "content")
	_, err := uploads.Finish(t.Context(), uploader, id, d("another"))
	wantCode(t, err, registry.CodeDigest)
	wantNothing(t, blobs, d("another"))
	wantNoUpload(t, uploads, uploader, id)
}

// A digest that is none says nothing about the bytes: the upload stays.
func testUploadsMalformed(t *testing.T, uploads storage.Uploads, blobs storage.Blobs) {
	id := beginUpload(t, uploads)
	for _, malformed := range []registry.Digest{"", "sha256:", "sha256:../../x", "md5:d41d8cd98f00b204e9800998ecf8427e", digest.SHA384.FromString("")} {
		_, err := uploads.Finish(t.Context(), uploader, id, malformed)
		wantCode(t, err, registry.CodeInvalid)
	}
	wantFinish(t, uploads, blobs, id, "")
}

func testUploadsInvisible(t *testing.T, uploads storage.Uploads, blobs storage.Blobs) {
	id := beginUpload(t, uploads)
	wantAppend(t, uploads, id, 0, "content")
	wantNothing(t, blobs, d("content"))
}

// What is cancelled is gone, whatever has arrived, and only its owner cancels.
func testUploadsCancel(t *testing.T, uploads storage.Uploads, blobs storage.Blobs) {
	for _, content := range []string{"", "con", strings.Repeat("x", 1<<20)} {
		id := beginUpload(t, uploads)
		if content != "" {
			wantAppend(t, uploads, id, 0, content)
		}
		wantCode(t, uploads.Cancel(t.Context(), alice, id), registry.CodeNotFound)
		wantOffset(t, uploads, id, int64(len(content)))
		must(t, uploads.Cancel(t.Context(), uploader, id))
		wantNoUpload(t, uploads, uploader, id)
		wantCode(t, uploads.Cancel(t.Context(), uploader, id), registry.CodeNotFound)
		_, _, err := blobs.Open(t.Context(), d(content))
		wantCode(t, err, registry.CodeNotFound)
	}
	for _, id := range []string{"", "..", "none", "\x00"} {
		wantCode(t, uploads.Cancel(t.Context(), uploader, id), registry.CodeNotFound)
	}
}

// While one Append is at work, nobody else may append, finish or cancel.
func testUploadsOneWriter(t *testing.T, uploads storage.Uploads, blobs storage.Blobs) {
	id := beginUpload(t, uploads)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := uploads.Append(t.Context(), uploader, id, 0, r)
		done <- err
	}()
	_, err := w.Write([]byte("content")) // returns when it was read, so Append is at work
	must(t, err)
	_, err = uploads.Append(t.Context(), uploader, id, 0, strings.NewReader("x"))
	wantCode(t, err, registry.CodeConflict)
	_, err = uploads.Finish(t.Context(), uploader, id, d("content"))
	wantCode(t, err, registry.CodeConflict)
	wantCode(t, uploads.Cancel(t.Context(), uploader, id), registry.CodeConflict)
	must(t, w.Close())
	must(t, <-done)
	wantFinish(t, uploads, blobs, id, "content")
}

// Of writers that all continue at the same place, one succeeds; its bytes are kept whole.
func testUploadsRace(t *testing.T, uploads storage.Uploads, blobs storage.Blobs) {
	id := beginUpload(t, uploads)
	var wg sync.WaitGroup
	var winners atomic.Int32
	var won atomic.Pointer[[]byte]
	for i := range 8 {
		wg.Go(func() {
			content := bytes.Repeat([]byte{byte('a' + i)}, 100_000+i)
			_, err := uploads.Append(t.Context(), uploader, id, 0, bytes.NewReader(content))
			if err == nil {
				winners.Add(1)
				won.Store(&content)
				return
			}
			wantCode(t, err, registry.CodeConflict)
		})
	}
	wg.Wait()
	if winners.Load() != 1 {
		t.Fatalf("%d writers wrote at the same place, want 1", winners.Load())
	}
	wantFinish(t, uploads, blobs, id, string(*won.Load()))
}
