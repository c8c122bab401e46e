package distribution_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/distribution"
)

// What the protocol's grammar calls a repository is one here.
func TestRepositoryNames(t *testing.T) {
	t.Parallel()
	w := listen(t, memory(t))
	grammar := rapid.StringMatching(`[a-z0-9]{1,8}((\.|_|__|-{1,4})[a-z0-9]{1,8}){0,3}(/[a-z0-9]{1,8}((\.|_|__|-{1,4})[a-z0-9]{1,8}){0,3}){0,3}`)
	rapid.Check(t, func(r *rapid.T) {
		name := grammar.Draw(r, "name")
		w.pushBlob(t, name, "content")
		w.wantBlob(t, name, "content", true)
	})
	longest := strings.Repeat("a", registry.MaxNameLength)
	w.pushBlob(t, longest, "content")
	w.do(t, "GET", at(longest+"a", "tags/list"), nil).want(t, 400, "NAME_INVALID")
}

// What the protocol's grammar calls a tag is one here, up to 128 characters.
func TestTagNames(t *testing.T) {
	t.Parallel()
	w := listen(t, memory(t))
	raw := image(t, w, repo, nil)
	rapid.Check(t, func(r *rapid.T) {
		tag := rapid.StringMatching(`[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}`).Draw(r, "tag")
		w.putManifest(t, repo, tag, typeImage, raw).want(t, 201, "")
		w.do(t, "GET", at(repo, "manifests", tag), nil).want(t, 200, "")
	})
	for _, c := range []struct {
		tag  string
		want int
	}{{strings.Repeat("x", 128), 201}, {strings.Repeat("x", 129), 400}, {".x", 400}, {"x+y", 400}, {"é", 400}} {
		if a := w.putManifest(t, repo, c.tag, typeImage, raw); a.status != c.want {
			t.Errorf("tag %q: got %d, want %d", c.tag, a.status, c.want)
		}
	}
}

// Every upload has a place of its own, named by a UUID, and says how far it is.
func TestUploadStatus(t *testing.T) {
	t.Parallel()
	place := regexp.MustCompile(`/blobs/uploads/([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})$`)
	everywhere(t, func(t *testing.T, w *world) {
		seen := make(map[string]bool)
		for range 3 {
			upload := w.begin(t, repo)
			m := place.FindStringSubmatch(upload)
			if m == nil || seen[m[1]] {
				t.Fatalf("the place of an upload is %s, after %v", upload, seen)
			}
			seen[m[1]] = true
			w.do(t, "PATCH", upload, strings.NewReader("01234"), "Content-Range", "0-4").want(t, 202, "")
			a := w.do(t, "GET", upload, nil).want(t, 204, "").wantHeader(t, "Range", "0-4")
			if w.location(t, a) != upload {
				t.Errorf("the status says that the upload is at %s, want %s", w.location(t, a), upload)
			}
		}
		w.do(t, "GET", at(repo, "blobs/uploads/3f0c0b0e-0000-4000-8000-000000000000"), nil).want(t, 404, "BLOB_UPLOAD_UNKNOWN")
	})
}

// HEAD answers as GET does, and has no body.
func TestHead(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		d := w.pushImage(t, repo, "1.0.0", nil)
		for _, path := range []string{
			at(repo, "manifests/1.0.0"), at(repo, "manifests", d), at(repo, "blobs", digest.FromString("layer")),
			at(repo, "manifests/2.0.0"), at(repo, "manifests", digest.FromString("no")),
			at(repo, "blobs", digest.FromString("no")), at("no/where", "manifests/1.0.0"),
		} {
			get, head := w.do(t, "GET", path, nil), w.do(t, "HEAD", path, nil)
			if get.status != head.status || len(head.body) != 0 {
				t.Errorf("%s: GET is %d, HEAD is %d with %d bytes", path, get.status, head.status, len(head.body))
			}
			if get.status == 200 {
				for _, key := range []string{"Content-Length", "Content-Type", "Docker-Content-Digest"} {
					head.wantHeader(t, key, get.header.Get(key))
				}
				head.wantHeader(t, "Content-Length", itoa(len(get.body)))
			}
		}
	})
}

// The list of blobs of a manifest may be empty.
func TestPushManifestWithoutLayers(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		d := w.pushImage(t, repo, "1.0.0", map[string]any{"layers": []any{}})
		w.do(t, "GET", at(repo, "manifests", d), nil).want(t, 200, "")
	})
}

// Of many who push the same blob at once, all succeed, and one copy is kept.
func TestPushTheSameBlobAtOnce(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		content := strings.Repeat("0123456789", 30_000)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() { w.pushBlob(t, "same/"+itoa(i%4), content) })
		}
		wg.Wait()
		for i := range 4 {
			w.wantBlob(t, "same/"+itoa(i), content, true)
		}
		held := 0
		for _, err := range w.Blobs.Digests(t.Context()) {
			must(t, err)
			held++
		}
		if held != 1 {
			t.Errorf("the store holds %d blobs, want 1", held)
		}
	})
}

// The whole life of an artifact by sha512, which nothing here treats as a second choice.
func TestEverythingBySHA512(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		push := func(repository, content string) digest.Digest {
			d := digest.SHA512.FromString(content)
			upload := w.begin(t, repository)
			middle := len(content) / 2
			a := w.do(t, "PATCH", upload, strings.NewReader(content[:middle]), "Content-Range", fmt.Sprintf("0-%d", middle-1)).want(t, 202, "")
			w.do(t, "PUT", w.location(t, a)+"?digest="+d.String(), strings.NewReader(content[middle:])).want(t, 201, "").
				wantHeader(t, "Docker-Content-Digest", d.String()).wantHeader(t, "Location", at(repository, "blobs", d))
			return d
		}
		described := func(mediaType, content string) map[string]any {
			return map[string]any{"mediaType": mediaType, "digest": digest.SHA512.FromString(content), "size": len(content)}
		}
		config, layer := push(repo, "{}"), push(repo, "the layer")
		fields := map[string]any{
			"schemaVersion": 2, "mediaType": typeImage, "config": described("application/vnd.test.config+json", "{}"), "layers": []any{described("a/b", "the layer")},
		}
		raw := document(t, fields, nil)
		d := digest.SHA512.FromString(raw)
		w.putManifest(t, repo, d.String(), typeImage, raw).want(t, 201, "").wantHeader(t, "Docker-Content-Digest", d.String())
		about := document(t, fields, map[string]any{"subject": described(typeImage, raw)})
		referrer := digest.SHA512.FromString(about)
		w.putManifest(t, repo, referrer.String(), typeImage, about).want(t, 201, "").wantHeader(t, "OCI-Subject", d.String())

		w.do(t, "GET", at(repo, "manifests", d), nil).want(t, 200, "").wantHeader(t, "Docker-Content-Digest", d.String())
		w.do(t, "GET", at(repo, "blobs", layer), nil, "Range", "bytes=4-").want(t, 206, "")
		if found := w.referrers(t, repo, d.String()); len(found) != 1 || found[0].Digest != referrer {
			t.Errorf("got referrers %v", found)
		}
		w.do(t, "POST", at(other, "blobs/uploads/?mount="+layer.String()+"&from="+repo), nil).want(t, 201, "")
		w.do(t, "HEAD", at(other, "blobs", layer), nil).want(t, 200, "")
		for path, code := range map[string]string{at(repo, "manifests", referrer): "MANIFEST_UNKNOWN",
			at(repo, "manifests", d): "MANIFEST_UNKNOWN", at(repo, "blobs", config): "BLOB_UNKNOWN"} {
			w.do(t, "DELETE", path, nil).want(t, 202, "")
			w.do(t, "GET", path, nil).want(t, 404, code)
		}
	})
}

// Tags that come with a manifest by digest are set with it, which is the one way to tag by
// another digest than sha256. It is of the edition after 1.1.1, and regctl uses it.
func TestPushManifestWithTags(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		raw := image(t, w, repo, nil)
		d := digest.SHA512.FromString(raw)
		push := func(query string) answer { return w.putManifest(t, repo, d.String()+query, typeImage, raw) }
		push("?tag=-x").want(t, 400, "MANIFEST_INVALID")
		push("?tag=a&tag=").want(t, 400, "MANIFEST_INVALID")
		push("?"+strings.Repeat("tag=a&", 101)).want(t, 414, "MANIFEST_INVALID")
		w.do(t, "GET", at(repo, "manifests", d), nil).want(t, 404, "MANIFEST_UNKNOWN")
		push("").want(t, 201, "").wantHeader(t, "OCI-Tag", "")
		push("?tag=1.0.0&tag=1").want(t, 201, "").wantHeader(t, "OCI-Tag", "1.0.0, 1").wantHeader(t, "Docker-Content-Digest", d.String())
		for _, tag := range []string{"1.0.0", "1"} {
			w.do(t, "HEAD", at(repo, "manifests", tag), nil).want(t, 200, "").wantHeader(t, "Docker-Content-Digest", d.String())
		}
		// A push by tag is of that tag alone.
		w.putManifest(t, repo, "2?tag=3", typeImage, raw).want(t, 201, "").wantHeader(t, "OCI-Tag", "")
		w.do(t, "GET", at(repo, "manifests/3"), nil).want(t, 404, "MANIFEST_UNKNOWN")
	})
}

// Each code of the protocol, and no other, has a request that it answers.
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	c := memory(t)
	c.Authorize = refuseByName
	w := listen(t, c)
	d := digest.FromString("x").String()
	upload := w.begin(t, repo)
	raw := `{"schemaVersion":2,"config":{"mediaType":"a/b","digest":"` + d + `","size":1},"layers":[]}`
	found := make(map[string]bool)
	for request, want := range map[string]string{
		"GET " + at(repo, "blobs", d):                   "404 BLOB_UNKNOWN",
		"PATCH " + upload:                               "400 BLOB_UPLOAD_INVALID",
		"GET " + at(repo, "blobs/uploads/x"):            "404 BLOB_UPLOAD_UNKNOWN",
		"GET " + at(repo, "blobs/x"):                    "400 DIGEST_INVALID",
		"PUT " + at(repo, "manifests/x"):                "400 MANIFEST_BLOB_UNKNOWN",
		"PUT " + at(repo, "manifests/-"):                "400 MANIFEST_INVALID",
		"GET " + at(repo, "manifests/x"):                "404 MANIFEST_UNKNOWN",
		"GET " + at("NAME", "tags/list"):                "400 NAME_INVALID",
		"GET " + at("not_found", "tags/list"):           "404 NAME_UNKNOWN",
		"POST " + at(repo, "blobs/uploads/?digest="+d):  "400 SIZE_INVALID",
		"GET " + at("unauthenticated", "tags/list"):     "401 UNAUTHORIZED",
		"GET " + at("forbidden", "tags/list"):           "403 DENIED",
		"POST " + at(repo, "tags/list"):                 "405 UNSUPPORTED",
		"GET " + at("unavailable", "manifests/current"): "503 TOOMANYREQUESTS",
	} {
		method, path, _ := strings.Cut(request, " ")
		header := []string{"Content-Type", typeImage}
		switch want {
		case "400 BLOB_UPLOAD_INVALID":
			header = []string{"Content-Range", "malformed"}
		case "400 SIZE_INVALID":
			header = []string{"Content-Range", "0-99"}
		}
		a := w.do(t, method, path, strings.NewReader(raw), header...)
		if got := itoa(a.status) + " " + a.code; got != want {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
		found[a.code] = true
	}
	for _, code := range specCodes {
		if !found[code] {
			t.Errorf("no request was answered with %s", code)
		}
	}
}

// refuseByName refuses the repositories that are called like a code of ours.
func refuseByName(_ context.Context, a distribution.Access) error {
	switch code := registry.Code(a.Repository); code {
	case registry.CodeNotFound, registry.CodeUnauthenticated, registry.CodeForbidden, registry.CodeUnavailable:
		return registry.Errorf(code, "no")
	}
	return nil
}

// An error's body is the protocol's JSON, whatever the caller says it takes.
func TestErrorBodies(t *testing.T) {
	t.Parallel()
	w := listen(t, memory(t))
	a := w.do(t, "GET", at(repo, "manifests/x"), nil, "Accept", "text/html").want(t, 404, "MANIFEST_UNKNOWN")
	var body struct {
		Errors []map[string]json.RawMessage `json:"errors"`
	}
	if err := json.Unmarshal(a.body, &body); err != nil || len(body.Errors) != 1 {
		t.Fatalf("got %s, %v", a.body, err)
	}
	for key := range body.Errors[0] {
		if key != "code" && key != "message" && key != "detail" {
			t.Errorf("the error has the field %s", key)
		}
	}
	if kind := http.DetectContentType(a.body); strings.HasPrefix(kind, "text/html") {
		t.Errorf("the body looks like %s", kind)
	}
}
