package distribution_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Components of a repository may be called as endpoints are.
func TestRepositoriesCalledLikeEndpoints(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		for _, repository := range []string{
			"blobs", "manifests", "uploads", "tags", "list", "v2", "a/blobs", "blobs/uploads", "a/blobs/uploads",
			"a/manifests/b", "tags/list", "a/tags/list", "referrers/a", "a/referrers", "blobs/blobs/blobs", "a/uploads",
		} {
			d := w.pushImage(t, repository, "list", nil)
			w.wantBlob(t, repository, "layer", true)
			w.do(t, "GET", at(repository, "manifests/list"), nil).want(t, 200, "").wantHeader(t, "Docker-Content-Digest", d.String())
			if a := w.do(t, "GET", at(repository, "tags/list"), nil).want(t, 200, ""); !strings.Contains(string(a.body), `"name":"`+repository+`"`) {
				t.Errorf("%s: got %s", repository, a.body)
			}
			w.referrers(t, repository, d.String())
		}
	})
}

func TestHostilePaths(t *testing.T) {
	t.Parallel()
	d := digest.FromString("x").String()
	c := memory(t)
	c.Authorize = func(_ context.Context, a distribution.Access) error {
		t.Errorf("asked about %+v", a)
		return nil
	}
	h, err := distribution.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":                       "404 UNSUPPORTED",
		"/":                      "404 UNSUPPORTED",
		"/v1/":                   "404 UNSUPPORTED",
		"/v2x":                   "404 UNSUPPORTED",
		"/v2//":                  "404 UNSUPPORTED",
		"/v2/a":                  "404 UNSUPPORTED",
		"/v2/_catalog/":          "404 UNSUPPORTED",
		"/v2/a/_catalog":         "404 UNSUPPORTED",
		"/v2/_catalog/tags/list": "400 NAME_INVALID",
		"/v2/a/tags":             "404 UNSUPPORTED",
		"/v2/a/tags/list/":       "404 UNSUPPORTED",
		"/v2/a/blobs/" + d + "/": "404 UNSUPPORTED",
		"/v2/a/manifests/x/y":    "404 UNSUPPORTED",
		"/v2/tags/list":          "400 NAME_INVALID",
		"/v2/blobs/" + d:         "400 NAME_INVALID",
		"/v2//blobs/" + d:        "400 NAME_INVALID",
		"/v2/../blobs/" + d:      "400 NAME_INVALID",
		"/v2/a/../b/blobs/" + d:  "400 NAME_INVALID",
		"/v2/a//b/manifests/x":   "400 NAME_INVALID",
		"/v2//a/manifests/x":     "400 NAME_INVALID",
		"/v2/A/manifests/x":      "400 NAME_INVALID",
		"/v2/a\x00/manifests/x":  "400 NAME_INVALID",
		"/v2/a\n/manifests/x":    "400 NAME_INVALID",
		"/v2/a\\b/manifests/x":   "400 NAME_INVALID",
		"/v2/ä/manifests/x":      "400 NAME_INVALID",
		"/v2/-a/manifests/x":     "400 NAME_INVALID",
		"/v2/a-/manifests/x":     "400 NAME_INVALID",
		"/v2/a..b/manifests/x":   "400 NAME_INVALID",
		"/v2/a___b/manifests/x":  "400 NAME_INVALID",
		"/v2/" + strings.Repeat("a", 256) + "/tags/list": "400 NAME_INVALID",
	} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}, Header: make(http.Header), Body: http.NoBody})
		got := itoa(rec.Code) + " " + errorCode(t, path, rec.Header(), rec.Body.Bytes())
		if got != want {
			t.Errorf("%q: got %s, want %s", path, got, want)
		}
	}
}

// Whatever is asked, the answer is no failure of the server, and errors have their form.
func FuzzRequests(f *testing.F) {
	d := digest.FromString("content").String()
	for _, path := range []string{
		"/v2/", "/v2/a/blobs/" + d, "/v2/a/blobs/uploads/", "/v2/a/blobs/uploads/x", "/v2/a/manifests/x", "/v2/a/manifests/" + d,
		"/v2/a/tags/list", "/v2/a/referrers/" + d, "/v2/a/blobs/blobs/blobs/" + d, "/v2/../a/manifests/..", "/v2/_catalog",
	} {
		for i := range methods() {
			f.Add(uint8(i), path, "n=1&last=a", "bytes=0-1", "application/vnd.oci.image.manifest.v1+json", []byte(`{"config":{},"layers":[{}],"subject":{}}`))
			f.Add(uint8(i), path, "digest="+d+"&mount="+d+"&from=a", "0-6", "", []byte("content"))
		}
	}
	f.Fuzz(func(t *testing.T, method uint8, path, query, span, contentType string, body []byte) {
		c := memory(t)
		if _, err := c.Uploads.Begin(t.Context(), storage.UploadOwner{Repository: "a"}); err != nil {
			t.Fatal(err)
		}
		h, err := distribution.New(c)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(methods()[int(method)%len(methods())], "/", strings.NewReader(string(body)))
		r.URL = &url.URL{Path: path, RawQuery: query}
		r.Header = http.Header{"Content-Type": {contentType}, "Range": {span}, "Content-Range": {span}}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code >= 500 || rec.Code < 200 {
			t.Fatalf("%s %q: %d %s", r.Method, path, rec.Code, rec.Body)
		}
		if rec.Code >= 400 {
			errorCode(t, path, rec.Header(), rec.Body.Bytes())
		}
		for m, err := range c.Refs.AllManifests(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if b, size, err := c.Blobs.Open(t.Context(), m.Manifest.Digest); err != nil || size != m.Manifest.Size {
				t.Fatalf("manifest %s has a record and no bytes: %v", m.Manifest.Digest, err)
			} else {
				b.Close()
			}
		}
	})
}

func methods() []string {
	return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "X"}
}
