package distribution_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"
	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/mem"
)

func TestPushBlobInOneRequest(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		for _, content := range []string{"content", ""} {
			for _, a := range []digest.Algorithm{digest.SHA256, digest.SHA512} {
				d := a.FromString(content)
				w.do(t, "POST", at(repo, "blobs/uploads/?digest="+d.String()), strings.NewReader(content), "Content-Type", typeBytes).
					want(t, 201, "").wantHeader(t, "Location", at(repo, "blobs", d)).wantHeader(t, "Docker-Content-Digest", d.String())
				if got := w.do(t, "GET", at(repo, "blobs", d), nil).want(t, 200, ""); string(got.body) != content {
					t.Errorf("got %q, want %q", got.body, content)
				}
			}
		}
		w.do(t, "POST", at(repo, "blobs/uploads?digest="+digest.FromString("stream").String()), stream("stream")).want(t, 201, "")
		w.wantBlob(t, repo, "stream", true)
	})
}

func TestPushBlobByPostAndPut(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		a := w.do(t, "POST", at(repo, "blobs/uploads/"), nil).want(t, 202, "")
		d := digest.FromString("content")
		w.do(t, "PUT", w.location(t, a)+"?digest="+d.String(), strings.NewReader("content")).
			want(t, 201, "").wantHeader(t, "Location", at(repo, "blobs", d))
		w.wantBlob(t, repo, "content", true)
		w.do(t, "GET", w.location(t, a), nil).want(t, 404, "BLOB_UPLOAD_UNKNOWN")
	})
}

// What is cancelled is gone, and nobody but its owner cancels.
func TestCancelUpload(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		upload := w.begin(t, repo)
		a := w.do(t, "PATCH", upload, strings.NewReader("content")).want(t, 202, "")
		upload = w.location(t, a)
		elsewhere := strings.Replace(upload, repo, "staging/elsewhere", 1)
		w.do(t, "DELETE", elsewhere, nil).want(t, 404, "BLOB_UPLOAD_UNKNOWN")
		w.do(t, "GET", upload, nil).want(t, 204, "")
		w.do(t, "DELETE", upload, nil).want(t, 204, "")
		w.do(t, "GET", upload, nil).want(t, 404, "BLOB_UPLOAD_UNKNOWN")
		w.do(t, "DELETE", upload, nil).want(t, 404, "BLOB_UPLOAD_UNKNOWN")
		w.do(t, "PUT", upload+"?digest="+digest.FromString("content").String(), nil).want(t, 404, "BLOB_UPLOAD_UNKNOWN")
		w.wantBlob(t, repo, "content", false)
	})
}

// Whoever has as many uploads under way as he may finishes or cancels one first. Others
// go on, and so do his pulls.
func TestTooManyUploads(t *testing.T) {
	t.Parallel()
	type principal struct{}
	db, dir := mem.New(), blob.NewDir(t.TempDir())
	h, err := distribution.New(distribution.Config{
		Blobs: dir, Refs: db, Deleter: db, Uploads: blob.NewUploads(dir, db), Authorize: allow, MaxUploads: 2, UploadCounts: db,
		Principal: func(ctx context.Context) string { name, _ := ctx.Value(principal{}).(string); return name },
	})
	if err != nil {
		t.Fatal(err)
	}
	do := func(who, method, target string, want int) http.Header {
		t.Helper()
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, httptest.NewRequest(method, target, nil).WithContext(context.WithValue(t.Context(), principal{}, who)))
		if recorder.Code != want {
			t.Errorf("%s %s by %s: %d %s, want %d", method, target, who, recorder.Code, recorder.Body, want)
		}
		return recorder.Header()
	}
	begin := "/v2/" + repo + "/blobs/uploads/"
	first := do("alice", "POST", begin, 202).Get("Location")
	second := do("alice", "POST", begin, 202).Get("Location")
	if do("alice", "POST", "/v2/staging/another/blobs/uploads/", 429).Get("Retry-After") == "" {
		t.Error("nothing says when to come again")
	}
	do("alice", "POST", begin+"?digest="+digest.FromString("").String(), 429)
	do("bob", "POST", begin, 202)
	do("alice", "DELETE", first, 204)
	do("alice", "POST", begin, 202)
	do("alice", "PUT", second+"?digest="+digest.FromString("").String(), 201)
	do("alice", "POST", begin, 202)
	do("alice", "POST", begin, 429)
	do("alice", "GET", "/v2/"+repo+"/blobs/"+digest.FromString("").String(), 200)
	if _, err := distribution.New(distribution.Config{Blobs: dir, Refs: db, Deleter: db,
		Uploads: blob.NewUploads(dir, db), Authorize: allow, MaxUploads: 2}); err == nil {
		t.Error("a bound that nobody counts by was taken")
	}
}

func TestPushBlobInChunks(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		upload := w.begin(t, repo)
		for i, piece := range []string{"0123", "45678"} {
			a := w.do(t, "PATCH", upload, strings.NewReader(piece), "Content-Range", []string{"0-3", "4-8"}[i], "Content-Type", typeBytes).
				want(t, 202, "").wantHeader(t, "Range", []string{"0-3", "0-8"}[i])
			upload = w.location(t, a)
			w.do(t, "GET", upload, nil).want(t, 204, "").wantHeader(t, "Range", []string{"0-3", "0-8"}[i])
			w.wantBlob(t, repo, "0123", false)
		}
		d := digest.FromString("0123456789")
		w.do(t, "PUT", upload+"?digest="+d.String(), strings.NewReader("9"), "Content-Range", "9-9").want(t, 201, "")
		w.wantBlob(t, repo, "0123456789", true)
	})
}

// Docker sends one PATCH of unknown length and no Content-Range.
func TestPushBlobAsStream(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		content := strings.Repeat("0123456789abcdef", 1<<16)
		upload := w.begin(t, repo)
		w.do(t, "PATCH", upload, stream(content)).want(t, 202, "").wantHeader(t, "Range", "0-"+itoa(len(content)-1))
		w.do(t, "PUT", upload+"?digest="+digest.FromString(content).String(), nil).want(t, 201, "")
		w.wantBlob(t, repo, content, true)
	})
}

func TestPushChunkOutOfOrder(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		upload := w.begin(t, repo)
		w.do(t, "PATCH", upload, strings.NewReader("45"), "Content-Range", "4-5").want(t, 416, "BLOB_UPLOAD_INVALID")
		w.do(t, "PATCH", upload, strings.NewReader("0123"), "Content-Range", "0-3").want(t, 202, "")
		for _, wrong := range []string{"0-1", "3-4", "5-6", "400-401"} {
			a := w.do(t, "PATCH", upload, strings.NewReader("xx"), "Content-Range", wrong).
				want(t, 416, "BLOB_UPLOAD_INVALID").wantHeader(t, "Range", "0-3")
			if w.location(t, a) != upload {
				t.Errorf("Location is %s, want %s", w.location(t, a), upload)
			}
			w.do(t, "PUT", upload+"?digest="+digest.FromString("0123xx").String(), strings.NewReader("xx"), "Content-Range", wrong).
				want(t, 416, "BLOB_UPLOAD_INVALID")
		}
		w.do(t, "GET", upload, nil).want(t, 204, "").wantHeader(t, "Range", "0-3")
		w.do(t, "PATCH", upload, strings.NewReader("45"), "Content-Range", "4-5").want(t, 202, "")
		w.do(t, "PUT", upload+"?digest="+digest.FromString("012345").String(), nil).want(t, 201, "")
		w.wantBlob(t, repo, "012345", true)
	})
}

func TestPushMalformedChunk(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		upload := w.begin(t, repo)
		for _, malformed := range []string{"0", "-1", "1-0", "a-b", "bytes 0-1/2", "0-99999999999999999999", "0-9223372036854775807", "0-1,3-4", "٠-١"} {
			a := w.do(t, "PATCH", upload, strings.NewReader("xx"), "Content-Range", malformed)
			if a.status != 400 || (a.code != "BLOB_UPLOAD_INVALID" && a.code != "SIZE_INVALID") {
				t.Errorf("%s: got %d %s", malformed, a.status, a.code)
			}
		}
		w.do(t, "PATCH", upload, strings.NewReader("xx"), "Content-Range", "0-2").want(t, 400, "SIZE_INVALID")
		w.do(t, "GET", upload, nil).want(t, 204, "").wantHeader(t, "Range", "0-0")

		// Of a body of unknown length, what came counts, up to the end that was announced.
		w.do(t, "PATCH", upload, stream("012345"), "Content-Range", "0-3").want(t, 400, "SIZE_INVALID").wantHeader(t, "Range", "0-3")
		w.do(t, "PATCH", upload, stream("45"), "Content-Range", "4-9").want(t, 400, "SIZE_INVALID").wantHeader(t, "Range", "0-5")
		w.do(t, "PUT", upload+"?digest="+digest.FromString("012345").String(), nil).want(t, 201, "")
	})
}

// Whoever names a digest must send its bytes: the store having them proves nothing.
func TestPushWrongDigest(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		secret := w.pushBlob(t, other, "secret")
		for _, guess := range []string{"", "public", "secreT", "secret!"} {
			w.do(t, "POST", at(repo, "blobs/uploads/?digest="+secret.String()), strings.NewReader(guess)).want(t, 400, "DIGEST_INVALID")
			upload := w.begin(t, repo)
			w.do(t, "PUT", upload+"?digest="+secret.String(), strings.NewReader(guess)).want(t, 400, "DIGEST_INVALID")
			w.do(t, "GET", upload, nil).want(t, 404, "BLOB_UPLOAD_UNKNOWN")
		}
		w.wantBlob(t, repo, "secret", false)
		w.wantBlob(t, repo, "public", false)
	})
}

// A request that has all bytes of a digest does not end an upload that has other bytes already,
// or one that is not there.
func TestPushWholeIntoUpload(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		const content = "all bytes"
		d := digest.FromString(content)
		location := w.begin(t, repo)
		w.do(t, "PATCH", location, strings.NewReader("x")).want(t, 202, "")
		w.do(t, "PUT", location+"?digest="+d.String(), strings.NewReader(content)).want(t, 400, "DIGEST_INVALID")
		ended := w.begin(t, repo)
		w.do(t, "DELETE", ended, nil).want(t, 204, "")
		w.do(t, "PUT", ended+"?digest="+d.String(), strings.NewReader(content)).want(t, 404, "BLOB_UPLOAD_UNKNOWN")
		w.do(t, "GET", at(repo, "blobs", d), nil).want(t, 404, "BLOB_UNKNOWN")
		w.do(t, "PUT", w.begin(t, repo)+"?digest="+d.String(), strings.NewReader(content)).want(t, 201, "")
		w.do(t, "GET", at(repo, "blobs", d), nil).want(t, 200, "")
	})
}

// Without a digest, or with one that is none, the upload is as it was.
func TestPushMalformedDigest(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		upload := w.begin(t, repo)
		for _, malformed := range []string{"", "?digest=", "?digest=sha256:abc", "?digest=../x", "?digest=" + digest.SHA384.FromString("").String()} {
			w.do(t, "PUT", upload+malformed, strings.NewReader("content")).want(t, 400, "DIGEST_INVALID")
		}
		w.do(t, "POST", at(repo, "blobs/uploads/?digest=x"), strings.NewReader("content")).want(t, 400, "DIGEST_INVALID")
		w.do(t, "PUT", upload+"?digest="+digest.FromString("content").String(), strings.NewReader("content")).want(t, 201, "")
	})
}

func TestUploadBelongsToItsRepository(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		upload := w.begin(t, repo)
		id := upload[strings.LastIndex(upload, "/")+1:]
		for _, path := range []string{at(other, "blobs/uploads", id), at(repo, "blobs/uploads", id+"x"),
			at(repo, "blobs/uploads/.."), at(repo, "blobs/uploads/..%2F..%2Fx")} {
			for method, query := range map[string]string{"GET": "", "PATCH": "", "PUT": "?digest=" + digest.FromString("x").String()} {
				if a := w.do(t, method, path+query, strings.NewReader("x")); a.status != 404 && a.status != 400 && a.status != 405 {
					t.Errorf("%s %s: got %d", method, path, a.status)
				}
			}
		}
		w.do(t, "GET", at(other, "blobs/uploads", id), nil).want(t, 404, "BLOB_UPLOAD_UNKNOWN")
		w.do(t, "GET", upload, nil).want(t, 204, "").wantHeader(t, "Range", "0-0")
	})
}

// Who may push to a repository may not go on with what somebody else pushes there.
func TestUploadBelongsToItsPrincipal(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(testing.TB) distribution.Config{"memory": memory, "disk": disk} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var caller atomic.Value
			c := store(t)
			c.Principal = func(context.Context) string { return caller.Load().(string) }
			w := listen(t, c)
			d := digest.FromString("content").String()
			caller.Store("alice")
			upload := w.begin(t, repo)
			w.do(t, "PATCH", upload, strings.NewReader("con"), "Content-Range", "0-2").want(t, 202, "")
			for _, stranger := range []string{"bob", ""} {
				caller.Store(stranger)
				for _, r := range []answer{
					w.do(t, "GET", upload, nil),
					w.do(t, "PATCH", upload, strings.NewReader("tent"), "Content-Range", "3-6"),
					w.do(t, "PUT", upload+"?digest="+d, strings.NewReader("tent")),
				} {
					r.want(t, 404, "BLOB_UPLOAD_UNKNOWN")
				}
			}
			caller.Store("alice")
			w.do(t, "PUT", upload+"?digest="+d, strings.NewReader("tent")).want(t, 201, "")
			w.wantBlob(t, repo, "content", true)
		})
	}
}

// Of chunks that all begin at the same place, one is taken.
func TestPushParallelChunks(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		upload := w.begin(t, repo)
		var mu sync.Mutex
		var taken []string
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				piece := strings.Repeat(string(rune('a'+i)), 200_000)
				a := w.do(t, "PATCH", upload, strings.NewReader(piece), "Content-Range", "0-199999")
				if a.status == 202 {
					mu.Lock()
					defer mu.Unlock()
					taken = append(taken, piece)
					return
				}
				a.want(t, 416, "BLOB_UPLOAD_INVALID")
			})
		}
		wg.Wait()
		if len(taken) != 1 {
			t.Fatalf("%d chunks were taken, want 1", len(taken))
		}
		w.do(t, "PUT", upload+"?digest="+digest.FromString(taken[0]).String(), nil).want(t, 201, "")
		w.wantBlob(t, repo, taken[0], true)
	})
}

// A connection that breaks in a chunk leaves what came; nothing is visible, and the
// upload goes on from there.
func TestResumeAfterDisconnect(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		content := strings.Repeat("0123456789", 10_000)
		upload := w.begin(t, repo)
		<-w.served
		for _, request := range []string{"PATCH %s HTTP/1.1\r\nContent-Range: 0-99999\r\n",
			"PUT %s?digest=" + digest.FromString(content).String() + " HTTP/1.1\r\n"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			a := w.do(t, "GET", upload, nil)
			<-w.served
			have := sent(t, a)
			rest := content[have:]
			head := fmt.Sprintf(request, strings.TrimPrefix(upload, w.url)) + "Host: x\r\nContent-Length: " + itoa(len(rest)) + "\r\n\r\n"
			if _, err := io.WriteString(conn, head+rest[:30_000]); err != nil {
				t.Fatal(err)
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			<-w.served
			w.wantBlob(t, repo, content, false)
			<-w.served
		}
		have := sent(t, w.do(t, "GET", upload, nil).want(t, 204, ""))
		if have == 0 || have > 60_000 {
			t.Fatalf("%d bytes are there after two times 30000 were sent", have)
		}
		w.do(t, "PATCH", upload, strings.NewReader(content[have:]), "Content-Range", fmt.Sprintf("%d-99999", have)).want(t, 202, "")
		w.do(t, "PUT", upload+"?digest="+digest.FromString(content).String(), nil).want(t, 201, "")
		w.wantBlob(t, repo, content, true)
	})
}

// sent reads how much of an upload is there.
func sent(t *testing.T, a answer) int {
	t.Helper()
	var last int
	if _, err := fmt.Sscanf(a.header.Get("Range"), "0-%d", &last); err != nil {
		t.Fatal(err)
	}
	if last == 0 {
		return 0
	}
	return last + 1
}

// However a blob is cut into chunks, whatever wrong chunks come between them, it is the
// same blob, and not visible before its end.
func TestPushChunksProperty(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		rounds := 0 // each in a repository of its own, since contents may repeat
		rapid.Check(t, func(r *rapid.T) {
			rounds++
			content := string(rapid.SliceOfN(rapid.Byte(), 1, 2000).Draw(r, "content"))
			repository := "property/" + itoa(rounds)
			d := digest.FromString(content)
			upload := w.begin(t, repository)
			for have := 0; have < len(content); {
				n := rapid.IntRange(1, len(content)-have).Draw(r, "length")
				piece := content[have : have+n]
				if wrong := rapid.IntRange(0, len(content)).Draw(r, "wrong"); wrong != have {
					w.do(t, "PATCH", upload, strings.NewReader(piece), "Content-Range", fmt.Sprintf("%d-%d", wrong, wrong+n-1)).want(t, 416, "BLOB_UPLOAD_INVALID")
				}
				w.wantBlob(t, repository, content, false)
				a := w.do(t, "PATCH", upload, strings.NewReader(piece), "Content-Range", fmt.Sprintf("%d-%d", have, have+n-1)).want(t, 202, "")
				have += n
				a.wantHeader(t, "Range", "0-"+itoa(have-1))
			}
			w.do(t, "PUT", upload+"?digest="+d.String(), nil).want(t, 201, "")
			w.wantBlob(t, repository, content, true)
		})
	})
}
