package distribution_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

const (
	repo  = "staging/vision/digits"
	other = "staging/other"

	typeImage = "application/vnd.oci.image.manifest.v1+json"
	typeIndex = "application/vnd.oci.image.index.v1+json"
	typeBytes = "application/octet-stream"
)

// specCodes is all codes that the protocol has.
var specCodes = strings.Fields(`BLOB_UNKNOWN BLOB_UPLOAD_INVALID BLOB_UPLOAD_UNKNOWN DIGEST_INVALID MANIFEST_BLOB_UNKNOWN
	MANIFEST_INVALID MANIFEST_UNKNOWN NAME_INVALID NAME_UNKNOWN SIZE_INVALID UNAUTHORIZED DENIED UNSUPPORTED TOOMANYREQUESTS`)

// world is a registry that listens.
type world struct {
	distribution.Config
	url    string
	client *http.Client
	served chan struct{} // a value for every request that was answered, if somebody listens
}

func allow(context.Context, distribution.Access) error { return nil }

// memory is a registry in maps.
func memory(testing.TB) distribution.Config {
	blobs, db := mem.NewBlobs(), mem.New()
	return distribution.Config{Blobs: blobs, Refs: db, Deleter: db, Uploads: mem.NewUploads(blobs), Authorize: allow}
}

// disk is a registry in files.
func disk(t testing.TB) distribution.Config {
	path := t.TempDir()
	db, err := sqlite.Open(t.Context(), filepath.Join(path, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	dir := blob.NewDir(path)
	return distribution.Config{Blobs: dir, Refs: db, Deleter: db, Uploads: blob.NewUploads(dir, db), Authorize: allow}
}

// listen serves a registry until the test ends.
func listen(t testing.TB, c distribution.Config) *world {
	t.Helper()
	h, err := distribution.New(c)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Config: c, served: make(chan struct{}, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(rw, r)
		select {
		case w.served <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(server.Close)
	w.url, w.client = server.URL, server.Client()
	return w
}

// everywhere runs a test on each kind of store.
func everywhere(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, store := range map[string]func(testing.TB) distribution.Config{"memory": memory, "disk": disk, "object store": bucket} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, listen(t, store(t)))
		})
	}
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
	code   string // of the error, if it is one
}

// do sends a request; header is keys and values. Whatever is no success must be an
// error in the protocol's form.
func (w *world) do(t testing.TB, method, path string, body io.Reader, header ...string) answer {
	t.Helper()
	target := path
	if strings.HasPrefix(path, "/") {
		target = w.url + path
	}
	r, err := http.NewRequestWithContext(t.Context(), method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: read the answer: %v", method, path, err)
	}
	a := answer{status: response.StatusCode, header: response.Header, body: content}
	if warning := response.Header.Values("Warning"); len(warning) > 0 {
		t.Errorf("%s %s: the protocol has a form for warnings, and nothing here warns: %q", method, path, warning)
	}
	if a.status >= 400 && method != http.MethodHead {
		a.code = errorCode(t, method+" "+path, a.header, a.body)
	}
	return a
}

// errorCode gives the code of an error's body, which must have the protocol's form.
func errorCode(t testing.TB, subject string, header http.Header, body []byte) string {
	t.Helper()
	var said struct {
		Errors []struct{ Code, Message string }
	}
	if err := json.Unmarshal(body, &said); err != nil || len(said.Errors) != 1 || header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: the error is %q of type %q, want one error in JSON (%v)", subject, body, header.Get("Content-Type"), err)
		return ""
	}
	if e := said.Errors[0]; !slices.Contains(specCodes, e.Code) || e.Message == "" {
		t.Errorf("%s: the error is %+v, want a code of the protocol and a message", subject, e)
	}
	return said.Errors[0].Code
}

// want checks a status and, for an error, its code.
func (a answer) want(t testing.TB, status int, code string) answer {
	t.Helper()
	if a.status != status || a.code != code {
		t.Errorf("got %d %s %s, want %d %s", a.status, a.code, a.body, status, code)
	}
	return a
}

func (a answer) wantHeader(t testing.TB, key, value string) answer {
	t.Helper()
	if got := a.header.Get(key); got != value {
		t.Errorf("header %s is %q, want %q", key, got, value)
	}
	return a
}

// at is a URL in a repository.
func at(repository string, rest ...any) string {
	path := "/v2/" + repository
	for _, r := range rest {
		switch r := r.(type) {
		case string:
			path += "/" + r
		case digest.Digest:
			path += "/" + r.String()
		}
	}
	return path
}

// location makes the URL of a Location header absolute.
func (w *world) location(t testing.TB, a answer) string {
	t.Helper()
	to := a.header.Get("Location")
	if to == "" {
		t.Fatalf("no Location: %d %s", a.status, a.body)
	}
	if strings.HasPrefix(to, "/") {
		to = w.url + to
	}
	return to
}

// begin starts an upload and gives its URL.
func (w *world) begin(t testing.TB, repository string) string {
	t.Helper()
	return w.location(t, w.do(t, "POST", at(repository, "blobs/uploads/"), nil).want(t, 202, ""))
}

// pushBlob pushes a blob by POST and PUT.
func (w *world) pushBlob(t testing.TB, repository, content string) registry.Digest {
	t.Helper()
	d := digest.FromString(content)
	w.do(t, "PUT", w.begin(t, repository)+"?digest="+d.String(), strings.NewReader(content), "Content-Type", typeBytes).want(t, 201, "")
	return d
}

// wantBlob wants a repository to have a blob, or not.
func (w *world) wantBlob(t testing.TB, repository, content string, there bool) {
	t.Helper()
	a := w.do(t, "GET", at(repository, "blobs", digest.FromString(content)), nil)
	if !there {
		a.want(t, 404, "BLOB_UNKNOWN")
		return
	}
	if a.want(t, 200, ""); string(a.body) != content {
		t.Errorf("the blob has %d bytes that are not the %d pushed", len(a.body), len(content))
	}
}

func desc(mediaType, content string) map[string]any {
	return map[string]any{"mediaType": mediaType, "digest": digest.FromString(content), "size": len(content)}
}

// image is a manifest over pushed blobs, with other fields on top; a nil one is left out.
func image(t testing.TB, w *world, repository string, fields map[string]any) string {
	t.Helper()
	w.pushBlob(t, repository, "{}")
	w.pushBlob(t, repository, "layer")
	doc := map[string]any{
		"schemaVersion": 2, "mediaType": typeImage,
		"config": desc("application/vnd.test.config+json", "{}"), "layers": []any{desc("application/vnd.test.layer", "layer")},
	}
	return document(t, doc, fields)
}

// document encodes a map with fields on top.
func document(t testing.TB, doc, fields map[string]any) string {
	t.Helper()
	for key, value := range fields {
		if doc[key] = value; value == nil {
			delete(doc, key)
		}
	}
	raw, err := json.MarshalIndent(doc, "", "   ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (w *world) putManifest(t testing.TB, repository, reference, mediaType, raw string) answer {
	t.Helper()
	return w.do(t, "PUT", at(repository, "manifests", reference), strings.NewReader(raw), "Content-Type", mediaType)
}

// pushImage pushes an image under a tag and gives its digest.
func (w *world) pushImage(t testing.TB, repository, tag string, fields map[string]any) registry.Digest {
	t.Helper()
	raw := image(t, w, repository, fields)
	w.putManifest(t, repository, tag, typeImage, raw).want(t, 201, "")
	return digest.FromString(raw)
}

// stream is a reader whose length a client does not know, so that it sends chunks.
func stream(content string) io.Reader { return struct{ io.Reader }{bytes.NewReader([]byte(content))} }

func itoa(n int) string { return strconv.Itoa(n) }
