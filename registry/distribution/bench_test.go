package distribution_test

import (
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// benchBytes is the size of the blob of all benchmarks here; compare them with each other.
const benchBytes = 64 << 20

func benchContent() string { return strings.Repeat("0123456789abcdef", benchBytes/16) }

// BenchmarkSHA256 is the least that a push can cost.
func BenchmarkSHA256(b *testing.B) {
	content := []byte(benchContent())
	b.SetBytes(benchBytes)
	for b.Loop() {
		sha256.Sum256(content)
	}
}

// BenchmarkPush pushes by POST and PUT to files, durably. Client and server share the
// processors and the count of allocated bytes.
func BenchmarkPush(b *testing.B) {
	content := benchContent()
	w := listen(b, disk(b))
	d := digest.FromString(content)
	b.SetBytes(benchBytes)
	b.ReportAllocs()
	for b.Loop() {
		w.do(b, "PUT", w.begin(b, repo)+"?digest="+d.String(), strings.NewReader(content)).want(b, 201, "")
	}
}

// BenchmarkPull reads from files. The client throws the bytes away.
func BenchmarkPull(b *testing.B) {
	content := benchContent()
	w := listen(b, disk(b))
	d := w.pushBlob(b, repo, content)
	b.SetBytes(benchBytes)
	b.ReportAllocs()
	for b.Loop() {
		response, err := w.client.Get(w.url + at(repo, "blobs", d))
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil || n != benchBytes || response.StatusCode != http.StatusOK {
			b.Fatal(n, err, response.Status)
		}
	}
}

// unversioned is a store that cannot tell whether bytes were changed, so each pull hashes
// them.
type unversioned struct{ storage.Blobs }

func (u unversioned) Open(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
	blob, size, err := u.Blobs.Open(ctx, d)
	return struct{ storage.Blob }{blob}, size, err
}

// BenchmarkPullRatio compares three kinds of pulls from files, in turns: by
// [http.ServeContent] alone, of a blob that was pulled before, and of one that has to be
// hashed. It reports the first quartile of each as a multiple of that of the first kind.
func BenchmarkPullRatio(b *testing.B) {
	content := benchContent()
	c := disk(b)
	again := listen(b, c)
	d := again.pushBlob(b, repo, content)
	c.Blobs = unversioned{c.Blobs}
	hashed := listen(b, c)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		blob, _, err := again.Blobs.Open(r.Context(), d)
		if err != nil {
			b.Error(err)
			return
		}
		defer blob.Close()
		http.ServeContent(w, r, "", time.Time{}, blob)
	}))
	b.Cleanup(plain.Close)
	urls := []string{plain.URL, again.url + at(repo, "blobs", d), hashed.url + at(repo, "blobs", d)}
	took := make([][]time.Duration, len(urls))
	for b.Loop() {
		for i, url := range urls {
			began := time.Now()
			response, err := again.client.Get(url)
			if err != nil {
				b.Fatal(err)
			}
			n, err := io.Copy(io.Discard, response.Body)
			response.Body.Close()
			if err != nil || n != benchBytes {
				b.Fatal(n, err, response.Status)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	for i, unit := range []string{"", "again/plain", "hashed/plain"} {
		slices.Sort(took[i])
		if unit != "" {
			b.ReportMetric(float64(took[i][len(took[i])/4])/float64(took[0][len(took[0])/4]), unit)
		}
	}
}

// BenchmarkManifest reads a manifest by its tag.
func BenchmarkManifest(b *testing.B) {
	w := listen(b, disk(b))
	w.pushImage(b, repo, "1.0.0", nil)
	for b.Loop() {
		w.do(b, "GET", at(repo, "manifests/1.0.0"), nil).want(b, 200, "")
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}
