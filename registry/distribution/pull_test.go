package distribution_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/mem"
)

func TestPing(t *testing.T) {
	t.Parallel()
	w := listen(t, memory(t))
	for _, path := range []string{"/v2/", "/v2"} {
		w.do(t, "GET", path, nil).want(t, 200, "").wantHeader(t, "Content-Type", "application/json")
	}
}

func TestPullBlob(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		d := w.pushBlob(t, repo, "content")
		for _, method := range []string{"GET", "HEAD"} {
			a := w.do(t, method, at(repo, "blobs", d), nil).want(t, 200, "").
				wantHeader(t, "Content-Length", "7").wantHeader(t, "Content-Type", typeBytes).
				wantHeader(t, "Docker-Content-Digest", d.String()).wantHeader(t, "Etag", `"`+d.String()+`"`)
			if method == "GET" && string(a.body) != "content" {
				t.Errorf("got %q", a.body)
			}
			w.do(t, method, at(repo, "blobs", d), nil, "If-None-Match", `"`+d.String()+`"`).want(t, 304, "")
		}
		w.do(t, "GET", at(repo, "blobs", digest.FromString("no")), nil).want(t, 404, "BLOB_UNKNOWN")
		w.do(t, "HEAD", at(repo, "blobs", digest.FromString("no")), nil).want(t, 404, "")
		w.do(t, "GET", at(repo, "blobs/sha256:abc"), nil).want(t, 400, "DIGEST_INVALID")
		w.do(t, "GET", at(repo, "blobs", digest.SHA384.FromString("content")), nil).want(t, 400, "DIGEST_INVALID")
	})
}

func TestPullRangesOfBlob(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		d := w.pushBlob(t, repo, "0123456789")
		for _, c := range []struct{ asked, want, header string }{
			{"bytes=2-4", "234", "bytes 2-4/10"},
			{"bytes=0-0", "0", "bytes 0-0/10"},
			{"bytes=7-", "789", "bytes 7-9/10"},
			{"bytes=-3", "789", "bytes 7-9/10"},
			{"bytes=-100", "0123456789", "bytes 0-9/10"},
			{"bytes=5-1000", "56789", "bytes 5-9/10"},
		} {
			a := w.do(t, "GET", at(repo, "blobs", d), nil, "Range", c.asked).want(t, 206, "").
				wantHeader(t, "Content-Range", c.header).wantHeader(t, "Content-Length", itoa(len(c.want)))
			if string(a.body) != c.want {
				t.Errorf("%s: got %q, want %q", c.asked, a.body, c.want)
			}
		}
		for _, beyond := range []string{"bytes=10-", "bytes=10-12", "bytes=100-200", "bytes=5-2", "bytes=x-y"} {
			a := w.do(t, "GET", at(repo, "blobs", d), nil, "Range", beyond).want(t, 416, "SIZE_INVALID")
			if a.header.Get("Content-Length") == "10" {
				t.Errorf("%s: the error has the length of the blob", beyond)
			}
		}
		if a := w.do(t, "GET", at(repo, "blobs", d), nil, "Range", "bytes=0-1,4-5").want(t, 200, ""); string(a.body) != "0123456789" {
			t.Errorf("two ranges: got %q, want the whole blob", a.body)
		}
		w.do(t, "GET", at(repo, "blobs", d), nil, "Range", "bytes=10-").wantHeader(t, "Content-Range", "bytes */10")
		w.do(t, "GET", at(repo, "blobs", d), nil, "Range", "bytes=0-1", "If-Range", `"sha256:other"`).want(t, 200, "")
	})
}

// What the store holds can be read only through a repository that it belongs to.
func TestPullOnlyThroughTheRepository(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		d := w.pushImage(t, repo, "1.0.0", nil)
		w.wantBlob(t, repo, "layer", true)
		for _, elsewhere := range []string{other, "staging/vision", "staging/vision/digits/sources", "staging/vision/digit"} {
			w.wantBlob(t, elsewhere, "layer", false)
			w.do(t, "GET", at(elsewhere, "manifests", d), nil).want(t, 404, "MANIFEST_UNKNOWN")
			w.do(t, "GET", at(elsewhere, "manifests/1.0.0"), nil).want(t, 404, "MANIFEST_UNKNOWN")
		}
		// The bytes of a manifest are in the same store, and are no blob of the repository.
		w.do(t, "GET", at(repo, "blobs", d), nil).want(t, 404, "BLOB_UNKNOWN")
	})
}

func TestPullManifest(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		raw := image(t, w, repo, nil)
		d := digest.FromString(raw)
		w.putManifest(t, repo, "1.0.0", typeImage, raw).want(t, 201, "")
		for _, reference := range []string{"1.0.0", d.String()} {
			for _, method := range []string{"GET", "HEAD"} {
				a := w.do(t, method, at(repo, "manifests", reference), nil).want(t, 200, "").
					wantHeader(t, "Content-Type", typeImage).wantHeader(t, "Content-Length", itoa(len(raw))).
					wantHeader(t, "Docker-Content-Digest", d.String())
				if method == "GET" && string(a.body) != raw {
					t.Errorf("got %q, want the bytes that were pushed", a.body)
				}
			}
		}
		for _, unknown := range []string{"2.0.0", digest.FromString("no").String(), ".no-tag", "-x", "a+b"} {
			w.do(t, "GET", at(repo, "manifests", unknown), nil).want(t, 404, "MANIFEST_UNKNOWN")
		}
		for _, malformed := range []string{"sha256:abc", "sha256:", "md5:d41d8cd98f00b204e9800998ecf8427e", "a:b"} {
			w.do(t, "GET", at(repo, "manifests", malformed), nil).want(t, 400, "DIGEST_INVALID")
		}
	})
}

// A blob whose bytes were lost or cut is not there, so that clients push it again, which
// mends it.
func TestPullDamagedBlob(t *testing.T) {
	t.Parallel()
	c := disk(t)
	path := t.TempDir()
	dir := blob.NewDir(path)
	c.Blobs, c.Uploads = dir, blob.NewUploads(dir, mem.New())
	w := listen(t, c)
	d := w.pushBlob(t, repo, "content")
	place := filepath.Join(path, "blobs", "sha256", d.Encoded()[:2], d.Encoded())
	for name, damage := range map[string]func() error{
		"lost": func() error { return os.Remove(place) },
		"cut": func() error {
			if err := os.Remove(place); err != nil {
				return err
			}
			return os.WriteFile(place, []byte("con"), 0o600)
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(name, err)
		}
		w.wantBlob(t, repo, "content", false)
		w.do(t, "POST", at(other, "blobs/uploads/?mount="+d.String()+"&from="+repo), nil).want(t, 202, "")
		w.pushBlob(t, repo, "content")
		w.wantBlob(t, repo, "content", true)
	}
}

// A manifest whose bytes were lost or truncated is not found. One whose bytes were changed is an
// error for GET, and not found for HEAD, so that clients push it again. A manifest in memory is
// served from there until it is deleted.
func TestPullDamagedManifest(t *testing.T) {
	t.Parallel()
	c := disk(t)
	path := t.TempDir()
	c.Blobs = blob.NewDir(path)
	const manifest = `{"schemaVersion":2,"mediaType":"application/vnd.example","a":"b"}`
	d := digest.FromString(manifest)
	place := filepath.Join(path, "blobs", "sha256", d.Encoded()[:2], d.Encoded())
	for name, content := range map[string]string{"lost": "", "cut": manifest[:9], "changed": strings.Replace(manifest, "b", "c", 1)} {
		w := listen(t, c) // which has nothing in memory
		w.putManifest(t, repo, "x", "application/vnd.example", manifest).want(t, 201, "")
		if err := os.Remove(place); err != nil {
			t.Fatal(name, err)
		}
		if content != "" {
			if err := os.WriteFile(place, []byte(content), 0o600); err != nil {
				t.Fatal(name, err)
			}
		}
		if name == "changed" {
			w.do(t, "GET", at(repo, "manifests/x"), nil).want(t, 400, "DIGEST_INVALID")
		} else {
			w.do(t, "GET", at(repo, "manifests/x"), nil).want(t, 404, "MANIFEST_UNKNOWN")
		}
		w.do(t, "HEAD", at(repo, "manifests/x"), nil).want(t, 404, "")
		w.putManifest(t, repo, "x", "application/vnd.example", manifest).want(t, 201, "")
		for range 2 {
			if a := w.do(t, "GET", at(repo, "manifests/x"), nil).want(t, 200, ""); string(a.body) != manifest {
				t.Errorf("%s, and pushed again: got %q", name, a.body)
			}
		}
		w.do(t, "DELETE", at(repo, "manifests", d), nil).want(t, 202, "")
		w.do(t, "GET", at(repo, "manifests", d), nil).want(t, 404, "MANIFEST_UNKNOWN")
	}
}

// Whoever pushes chooses media types; no browser shall run what they name.
func TestPullIsNothingForBrowsers(t *testing.T) {
	t.Parallel()
	w := listen(t, memory(t))
	w.putManifest(t, repo, "x", "text/html", `{"a":"<script>alert(1)</script>"}`).want(t, 201, "")
	w.do(t, "GET", at(repo, "manifests/x"), nil).want(t, 200, "").
		wantHeader(t, "X-Content-Type-Options", "nosniff").wantHeader(t, "Content-Security-Policy", "default-src 'none'; sandbox")
}
