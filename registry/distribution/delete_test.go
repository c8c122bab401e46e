package distribution_test

import (
	"context"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

func TestDeleteTag(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		d := w.pushImage(t, repo, "1.0.0", nil)
		w.pushImage(t, repo, "current", nil)
		w.do(t, "DELETE", at(repo, "manifests/1.0.0"), nil).want(t, 202, "")
		w.do(t, "GET", at(repo, "manifests/1.0.0"), nil).want(t, 404, "MANIFEST_UNKNOWN")
		w.do(t, "GET", at(repo, "manifests/current"), nil).want(t, 200, "")
		w.do(t, "GET", at(repo, "manifests", d), nil).want(t, 200, "")
		for _, unknown := range []string{"1.0.0", "-x"} {
			w.do(t, "DELETE", at(repo, "manifests", unknown), nil).want(t, 404, "MANIFEST_UNKNOWN")
		}
	})
}

func TestDeleteManifest(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		d := w.pushImage(t, repo, "1.0.0", nil)
		w.pushImage(t, repo, "current", nil)
		w.pushImage(t, other, "1.0.0", nil)
		referrer := w.attach(t, d, map[string]any{})
		w.do(t, "DELETE", at(repo, "manifests", referrer), nil).want(t, 202, "")
		if got := w.referrers(t, repo, d.String()); len(got) != 0 {
			t.Errorf("a deleted manifest is listed as referrer: %v", got)
		}
		w.do(t, "DELETE", at(repo, "manifests", d), nil).want(t, 202, "")
		for _, reference := range []string{d.String(), "1.0.0", "current"} {
			w.do(t, "GET", at(repo, "manifests", reference), nil).want(t, 404, "MANIFEST_UNKNOWN")
		}
		w.do(t, "GET", at(other, "manifests/1.0.0"), nil).want(t, 200, "")
		w.do(t, "DELETE", at(repo, "manifests", d), nil).want(t, 404, "MANIFEST_UNKNOWN")
		w.do(t, "DELETE", at(repo, "manifests/sha256:x"), nil).want(t, 400, "DIGEST_INVALID")
		w.pushImage(t, repo, "1.0.0", nil)
	})
}

func TestDeleteBlob(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		d := w.pushBlob(t, repo, "content")
		w.pushBlob(t, other, "content")
		w.do(t, "DELETE", at(repo, "blobs", d), nil).want(t, 202, "")
		w.wantBlob(t, repo, "content", false)
		w.wantBlob(t, other, "content", true)
		w.do(t, "DELETE", at(repo, "blobs", d), nil).want(t, 404, "BLOB_UNKNOWN")
		w.do(t, "DELETE", at("no/where", "blobs", digest.FromString("x")), nil).want(t, 404, "BLOB_UNKNOWN")
		w.do(t, "DELETE", at(repo, "blobs/x"), nil).want(t, 400, "DIGEST_INVALID")
		w.pushBlob(t, repo, "content")
		w.wantBlob(t, repo, "content", true)
	})
}

// keeper is a Deleter that deletes nothing.
type keeper struct{}

func (keeper) DeleteManifest(context.Context, string, registry.Digest) error { return errKept() }

func (keeper) DeleteTag(context.Context, string, string) error { return errKept() }

func (keeper) RemoveBlob(context.Context, string, registry.Digest) error { return errKept() }

func errKept() error { return registry.Errorf(registry.CodePolicy, "it belongs to a release") }

// What is kept from everybody is no question of rights: the protocol wants 405 for it.
func TestDeleteWhatIsKept(t *testing.T) {
	t.Parallel()
	c := memory(t)
	c.Deleter = keeper{}
	w := listen(t, c)
	d := w.pushImage(t, repo, "1.0.0", nil)
	for path, allowed := range map[string]string{
		at(repo, "manifests", d):                                   "GET, HEAD, PUT",
		at(repo, "manifests/1.0.0"):                                "GET, HEAD, PUT",
		at(repo, "blobs", digest.FromString("layer")):              "GET, HEAD",
		at("no/where", "manifests", digest.SHA512.FromString("x")): "GET, HEAD, PUT",
	} {
		a := w.do(t, "DELETE", path, nil).want(t, 405, "DENIED").wantHeader(t, "Allow", allowed)
		if !strings.Contains(string(a.body), "it belongs to a release") {
			t.Errorf("%s: the caller sees %s", path, a.body)
		}
	}
	w.wantBlob(t, repo, "layer", true)
	w.do(t, "GET", at(repo, "manifests/1.0.0"), nil).want(t, 200, "")
}
