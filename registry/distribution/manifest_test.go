package distribution_test

import (
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/distribution"
)

func TestPushManifest(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		raw := image(t, w, repo, nil)
		for _, d := range []digest.Digest{digest.FromString(raw), digest.SHA512.FromString(raw)} {
			w.putManifest(t, repo, d.String(), typeImage, raw).want(t, 201, "").
				wantHeader(t, "Location", at(repo, "manifests", d)).wantHeader(t, "Docker-Content-Digest", d.String()).wantHeader(t, "OCI-Subject", "")
			if a := w.do(t, "GET", at(repo, "manifests", d), nil).want(t, 200, ""); string(a.body) != raw {
				t.Errorf("got %q, want the bytes that were pushed", a.body)
			}
		}
		w.putManifest(t, repo, "1.0.0", typeImage, raw).want(t, 201, "").wantHeader(t, "Location", at(repo, "manifests", digest.FromString(raw)))
		again := image(t, w, repo, map[string]any{"annotations": map[string]string{"a": "b"}})
		w.putManifest(t, repo, "1.0.0", typeImage, again).want(t, 201, "")
		w.do(t, "HEAD", at(repo, "manifests/1.0.0"), nil).wantHeader(t, "Docker-Content-Digest", digest.FromString(again).String())
	})
}

// What nobody here understands comes back byte for byte, under the type it came with.
func TestPushUnknownMediaType(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		raw := "{ \"Layers\":[ 1,2],\n\t\"x\":\"\\u003c<\",\"manifests\":{} , \"layers\":\"\" }\n"
		for sent, got := range map[string]string{
			"application/vnd.example.Thing+json":        "application/vnd.example.Thing+json",
			"application/vnd.other+json; charset=utf-8": "application/vnd.other+json",
		} {
			raw += " "
			w.putManifest(t, repo, "x", sent, raw).want(t, 201, "")
			if a := w.do(t, "GET", at(repo, "manifests/x"), nil).want(t, 200, "").wantHeader(t, "Content-Type", got); string(a.body) != raw {
				t.Errorf("got %q, want %q", a.body, raw)
			}
		}
		raw = `{"mediaType":"application/vnd.third+json"}`
		w.do(t, "PUT", at(repo, "manifests/x"), strings.NewReader(raw)).want(t, 201, "")
		w.do(t, "HEAD", at(repo, "manifests/x"), nil).wantHeader(t, "Content-Type", "application/vnd.third+json")
	})
}

func TestPushManifestThatIsNone(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		good := image(t, w, repo, nil)
		with := func(fields map[string]any) string { return image(t, w, repo, fields) }
		missing := desc("application/vnd.test", "missing")
		short := desc("application/vnd.test", "layer")
		short["size"] = 4
		for name, c := range map[string]struct{ reference, mediaType, raw, code string }{
			"empty":                {"x", typeImage, "", "MANIFEST_INVALID"},
			"no JSON":              {"x", typeImage, "{", "MANIFEST_INVALID"},
			"no object":            {"x", typeImage, "null", "MANIFEST_INVALID"},
			"list":                 {"x", "application/vnd.x", "[]", "MANIFEST_INVALID"},
			"other type":           {"x", typeIndex, good, "MANIFEST_INVALID"},
			"no type":              {"x", "", with(map[string]any{"mediaType": nil}), "MANIFEST_INVALID"},
			"type that is none":    {"x", "x", "{}", "MANIFEST_INVALID"},
			"wrong digest":         {digest.FromString("x").String(), typeImage, good, "DIGEST_INVALID"},
			"malformed digest":     {"sha256:x", typeImage, good, "DIGEST_INVALID"},
			"malformed tag":        {"-x", typeImage, good, "MANIFEST_INVALID"},
			"long tag":             {strings.Repeat("x", 129), typeImage, good, "MANIFEST_INVALID"},
			"no config":            {"x", typeImage, with(map[string]any{"config": nil}), "MANIFEST_INVALID"},
			"layers that are none": {"x", typeImage, with(map[string]any{"layers": "x"}), "MANIFEST_INVALID"},
			"layer without digest": {"x", typeImage, with(map[string]any{"layers": []any{map[string]any{}}}), "MANIFEST_INVALID"},
			"missing layer":        {"x", typeImage, with(map[string]any{"layers": []any{missing}}), "MANIFEST_BLOB_UNKNOWN"},
			"missing config":       {"x", typeImage, with(map[string]any{"config": missing}), "MANIFEST_BLOB_UNKNOWN"},
			"wrong size":           {"x", typeImage, with(map[string]any{"layers": []any{short}}), "MANIFEST_INVALID"},
			"malformed subject":    {"x", typeImage, with(map[string]any{"subject": map[string]any{"digest": "x"}}), "MANIFEST_INVALID"},
			"image and index":      {"x", typeImage, with(map[string]any{"manifests": []any{}}), "MANIFEST_INVALID"},
			"index and image":      {"x", typeIndex, document(t, map[string]any{"manifests": []any{}}, map[string]any{"layers": []any{}}), "MANIFEST_INVALID"},
			"missing entry":        {"x", typeIndex, document(t, map[string]any{"manifests": []any{missing}}, nil), "MANIFEST_BLOB_UNKNOWN"},
		} {
			if a := w.putManifest(t, repo, c.reference, c.mediaType, c.raw); a.status != 400 || a.code != c.code {
				t.Errorf("%s: got %d %s, want 400 %s", name, a.status, a.body, c.code)
			}
		}
		w.do(t, "GET", at(repo, "manifests/x"), nil).want(t, 404, "MANIFEST_UNKNOWN")
	})
}

// A blob of another repository does not make a manifest whole.
func TestPushManifestOverForeignBlobs(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		raw := image(t, w, other, nil)
		w.putManifest(t, repo, "x", typeImage, raw).want(t, 400, "MANIFEST_BLOB_UNKNOWN")
		w.putManifest(t, other, "x", typeImage, raw).want(t, 201, "")
	})
}

// Layers that by their type or addresses are elsewhere need not be here.
func TestPushManifestWithForeignLayers(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		addressed := desc("application/vnd.test", "addressed")
		addressed["urls"] = []string{"https://example.com/layer"}
		w.pushImage(t, repo, "x", map[string]any{"layers": []any{
			addressed,
			desc("application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", "not to be had"),
			desc("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", "not to be had either"),
		}})
	})
}

// An index holds manifests, indexes and, since nobody forbids it, blobs.
func TestPushIndex(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		raw := image(t, w, repo, nil)
		w.putManifest(t, repo, digest.FromString(raw).String(), typeImage, raw).want(t, 201, "")
		inner := document(t,
			map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []any{desc(typeImage, raw), desc("x/y", "layer")}}, nil)
		w.putManifest(t, repo, "inner", typeIndex, inner).want(t, 201, "")
		outer := document(t, map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []any{desc(typeIndex, inner)}}, nil)
		w.putManifest(t, repo, "outer", typeIndex, outer).want(t, 201, "")
		empty := `{"schemaVersion":2,"mediaType":"` + typeIndex + `","manifests":[]}`
		w.putManifest(t, repo, "empty", typeIndex, empty).want(t, 201, "")
		wrong := document(t, map[string]any{"manifests": []any{map[string]any{"mediaType": typeImage, "digest": digest.FromString(raw), "size": 1}}}, nil)
		w.putManifest(t, repo, "wrong", typeIndex, wrong).want(t, 400, "MANIFEST_INVALID")
	})
}

func TestPushLargeManifest(t *testing.T) {
	t.Parallel()
	w := listen(t, memory(t))
	frame := len(`{"x":""}`)
	largest := `{"x":"` + strings.Repeat("x", distribution.DefaultMaxManifestBytes-frame) + `"}`
	w.putManifest(t, repo, "x", "application/vnd.x+json", largest).want(t, 201, "")
	w.putManifest(t, repo, "y", "application/vnd.x+json", largest+" ").want(t, 413, "SIZE_INVALID")
	w.do(t, "PUT", at(repo, "manifests/y"), stream(largest+" "), "Content-Type", "application/vnd.x+json").want(t, 413, "SIZE_INVALID")
	w.do(t, "GET", at(repo, "manifests/y"), nil).want(t, 404, "MANIFEST_UNKNOWN")
}

// A subject may come after who refers to it.
func TestPushManifestWithSubject(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		later := image(t, w, repo, nil)
		subject := digest.FromString(later)
		raw := image(t, w, repo, map[string]any{"subject": desc(typeImage, later), "artifactType": "application/vnd.a"})
		w.putManifest(t, repo, digest.FromString(raw).String(), typeImage, raw).want(t, 201, "").wantHeader(t, "OCI-Subject", subject.String())
		w.putManifest(t, repo, "1.0.0", typeImage, later).want(t, 201, "").wantHeader(t, "OCI-Subject", "")
		if got := w.referrers(t, repo, subject.String()); len(got) != 1 || got[0].Digest != digest.FromString(raw) {
			t.Errorf("got referrers %v", got)
		}
	})
}
