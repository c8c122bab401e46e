package distribution_test

import (
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
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

// BenchmarkManifest reads a manifest by its tag.
func BenchmarkManifest(b *testing.B) {
	w := listen(b, disk(b))
	w.pushImage(b, repo, "1.0.0", nil)
	for b.Loop() {
		w.do(b, "GET", at(repo, "manifests/1.0.0"), nil).want(b, 200, "")
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}
