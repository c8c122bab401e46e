package s3_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/s3"
	"mlpromote.dev/mlpromote/registry/storage"
)

// weather is the way to the shared server. From one request on it is broken, until it
// is mended: requests do not arrive, or they do and their answers do not.
type weather struct {
	from    atomic.Int64 // the number of the first request that is lost; 0: none
	seen    atomic.Int64
	arrives bool
}

// through opens a bucket behind a proxy with weather.
func through(t *testing.T, w *weather, prefix string) *s3.Bucket {
	t.Helper()
	target, err := url.Parse(shared.Endpoint)
	must(t, err)
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		n, from := w.seen.Add(1), w.from.Load()
		if from == 0 || n < from {
			forward.ServeHTTP(rw, r)
			return
		}
		if w.arrives {
			forward.ServeHTTP(httptest.NewRecorder(), r)
		}
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(proxy.Close)
	config, err := s3.ParseURL(shared.URL(prefix))
	must(t, err)
	config.Endpoint = proxy.URL
	b, err := s3.Open(t.Context(), config)
	must(t, err)
	w.seen.Store(0)
	return b
}

// smallPart is the least that stores take for a part.
const smallPart = 5 << 20

// TestEveryRequestFails makes the way to the store break at each of the requests that a
// push makes. What the client did before counts, and when the way is mended it can go on
// and finish; nothing partial is ever there. MLPROMOTE_SOAK breaks each request in both
// ways, else every other one is broken in each.
func TestEveryRequestFails(t *testing.T) {
	t.Parallel()
	newPrefix(t)
	for name, sizes := range map[string][]int{
		"in the record": {1000, 1000},
		"one object":    {100_000, 100_000},
		"parts":         {smallPart + 100_000, 100_000},
		"whole parts":   {smallPart},
	} {
		for _, arrives := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, arrives %v", name, arrives), func(t *testing.T) {
				t.Parallel()
				total := pushInWeather(t, sizes, &weather{}, 0)
				for n := first(arrives); n <= total; n += step() {
					pushInWeather(t, sizes, &weather{arrives: arrives}, n)
				}
			})
		}
	}
}

// pushInWeather pushes in pieces while the way breaks at a request, and gives the number
// of requests that it took.
func pushInWeather(t *testing.T, sizes []int, w *weather, from int64) int64 {
	t.Helper()
	prefix, db := newPrefix(t), mem.New()
	sky, ground := through(t, w, prefix), open(t, shared, prefix)
	sky.SetPartBytes(smallPart)
	ground.SetPartBytes(smallPart)
	w.from.Store(from)
	client, mended := s3.NewUploads(sky, db), s3.NewUploads(ground, db)
	var content []byte
	id := begin(t, client)
	for i, size := range sizes {
		before := len(content)
		content = append(content, random(uint64(40+i), size)...)
		_, err := client.Append(t.Context(), owner, id, int64(before), bytes.NewReader(content[before:]))
		if err == nil {
			continue
		}
		wantCode(t, err, registry.CodeUnavailable)
		have, err := mended.Offset(t.Context(), owner, id)
		must(t, err)
		if have < int64(before) {
			t.Fatalf("request %d: %d bytes were acknowledged and %d are there", from, before, have)
		}
		appendTo(t, mended, id, int(have), content[have:])
	}
	d := digest.FromBytes(content)
	wantNoBlob(t, ground, d)
	if _, err := client.Finish(t.Context(), owner, id, d); err != nil {
		wantCode(t, err, registry.CodeUnavailable)
		if _, err := mended.Finish(t.Context(), owner, id, d); err != nil {
			t.Fatalf("request %d: %v", from, err)
		}
	}
	wantBlob(t, ground, d, content)
	db.Now = func() time.Time { return time.Now().Add(2 * s3.LeftoverAge) }
	ground.SetLeftoverAge(-time.Hour)
	_, err := mended.Sweep(t.Context())
	must(t, err)
	wantEmptyStaging(t, ground)
	return w.seen.Load()
}

// The same for a blob that is put at once.
func TestEveryRequestOfPutFails(t *testing.T) {
	t.Parallel()
	newPrefix(t)
	content := random(60, smallPart+100_000)
	for _, arrives := range []bool{false, true} {
		t.Run(fmt.Sprint("arrives ", arrives), func(t *testing.T) {
			t.Parallel()
			total := putInWeather(t, content, &weather{}, 0)
			for n := first(arrives); n <= total; n += step() {
				putInWeather(t, content, &weather{arrives: arrives}, n)
			}
		})
	}
}

// first and step are the requests that are broken in one way.
func first(arrives bool) int64 {
	if arrives && step() == 2 {
		return 2
	}
	return 1
}

func step() int64 {
	if os.Getenv("MLPROMOTE_SOAK") != "" {
		return 1
	}
	return 2
}

// putInWeather puts a blob while the way breaks at a request, and gives the number of
// requests that it took.
func putInWeather(t *testing.T, content []byte, w *weather, from int64) int64 {
	t.Helper()
	d := digest.FromBytes(content)
	prefix := newPrefix(t)
	sky, ground := through(t, w, prefix), open(t, shared, prefix)
	sky.SetPartBytes(smallPart)
	w.from.Store(from)
	err := sky.Put(t.Context(), d, int64(len(content)), bytes.NewReader(content))
	took := w.seen.Load()
	if from == 0 {
		must(t, err)
		return took
	}
	wantCode(t, err, registry.CodeUnavailable)
	if blob, _, err := ground.Open(t.Context(), d); err == nil { // the last request arrived
		must(t, blob.Close())
		wantBlob(t, ground, d, content)
	}
	must(t, ground.Put(t.Context(), d, int64(len(content)), bytes.NewReader(content)))
	wantBlob(t, ground, d, content)
	ground.SetLeftoverAge(-time.Hour)
	_, err = s3.NewUploads(ground, mem.New()).Sweep(t.Context())
	must(t, err)
	wantEmptyStaging(t, ground)
	return took
}

// A store that is killed in the middle of a chunk and comes back.
func TestServerStops(t *testing.T) {
	t.Parallel()
	server := registrytest.StartS3Server(t)
	b := open(t, server, "x")
	kept := digest.FromString("kept")
	must(t, b.Put(t.Context(), kept, 4, strings.NewReader("kept")))
	u := s3.NewUploads(b, mem.New())
	id := begin(t, u)
	content := random(70, manyBytes)
	d := digest.FromBytes(content)
	appendTo(t, u, id, 0, content[:100_000])

	r := io.MultiReader(bytes.NewReader(content[100_000:manyBytes-10]), stopping(server.Stop), bytes.NewReader(content[manyBytes-10:]))
	_, err := u.Append(t.Context(), owner, id, 100_000, r)
	wantCode(t, err, registry.CodeUnavailable)
	for name, err := range map[string]error{
		"put":    b.Put(t.Context(), d, 3, strings.NewReader("new")),
		"delete": b.Delete(t.Context(), d),
		"open":   ignoreBlob(b.Open(t.Context(), kept)),
		"list":   firstError(t.Context(), b),
		"finish": ignoreSize(u.Finish(t.Context(), owner, id, digest.FromBytes(content[:100_000]))),
	} {
		if registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), "does not respond") {
			t.Errorf("%s: got %v, want CodeUnavailable", name, err)
		}
	}

	must(t, server.Start())
	wantNoBlob(t, b, d)
	have, err := u.Offset(t.Context(), owner, id)
	must(t, err)
	if have < 100_000 {
		t.Errorf("%d bytes are left of the 100000 that were acknowledged", have)
	}
	appendTo(t, u, id, int(have), content[have:])
	_, err = u.Finish(t.Context(), owner, id, d)
	must(t, err)
	wantBlob(t, b, d, content)
	wantBlob(t, b, kept, []byte("kept"))
}

// stopping is a reader of nothing that does something when it is reached.
type stopping func()

func (f stopping) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

func ignoreBlob(_ storage.Blob, _ int64, err error) error { return err }

func ignoreSize(_ int64, err error) error { return err }

func firstError(ctx context.Context, b *s3.Bucket) error {
	for _, err := range b.Digests(ctx) {
		return err
	}
	return nil
}

// A stream that breaks while it is read is taken up where it broke.
func TestReadGoesOn(t *testing.T) {
	t.Parallel()
	prefix := newPrefix(t)
	content := random(80, 3<<20)
	d := digest.FromBytes(content)
	must(t, open(t, shared, prefix).Put(t.Context(), d, int64(len(content)), bytes.NewReader(content)))
	target, err := url.Parse(shared.Endpoint)
	must(t, err)
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, filepath.Join("blobs", "sha256")) {
			w = &short{w, 1 << 20}
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	config, err := s3.ParseURL(shared.URL(prefix))
	must(t, err)
	config.Endpoint = proxy.URL
	b, err := s3.Open(t.Context(), config)
	must(t, err)
	wantBlob(t, b, d, content)
}

// short breaks off after some bytes.
type short struct {
	http.ResponseWriter
	left int
}

func (s *short) Write(p []byte) (int, error) {
	if s.left <= 0 {
		panic(http.ErrAbortHandler)
	}
	n, err := s.ResponseWriter.Write(p[:min(len(p), s.left)])
	s.left -= n
	return len(p), err
}
