package oci_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	containerregistry "github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

var (
	_ oci.Repository = (*remote.Repository)(nil)
	_ oci.Mounter    = (*remote.Repository)(nil)
	_ oci.Repository = (*memory.Store)(nil)
	_ oci.Repository = oras.GraphTarget(nil)
)

// tagging is oras-go's memory store, which finds a manifest by digest only if it was
// tagged with it.
type tagging struct{ *memory.Store }

func (s tagging) Push(ctx context.Context, desc ocispec.Descriptor, from io.Reader) error {
	if err := s.Store.Push(ctx, desc, from); err != nil {
		return err
	}
	return s.Store.Tag(ctx, desc, string(desc.Digest))
}

// destinations are the kinds of repository that a release can be copied to. Each gives
// a way to open the destination, beside the source that w has.
func destinations(t *testing.T, w *world) map[string]func() oci.Repository {
	server := newServer(t)
	blobs, refs := mem.NewBlobs(), mem.New()
	memoryStore := memory.New()
	return map[string]func() oci.Repository{
		"same store":  func() oci.Repository { return oci.Local(w.blobs, w.refs, prod) },
		"other store": func() oci.Repository { return oci.Local(blobs, refs, prod) },
		"remote":      func() oci.Repository { return remoteRepository(t, server.URL, prod) },
		"memory":      func() oci.Repository { return tagging{memoryStore} },
	}
}

// newServer is a registry by others, in memory.
func newServer(t *testing.T) *httptest.Server {
	server := httptest.NewServer(containerregistry.New(containerregistry.WithReferrersSupport(true),
		containerregistry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return server
}

func remoteRepository(t *testing.T, url, name string) *remote.Repository {
	repo, err := remote.NewRepository(strings.TrimPrefix(url, "http://") + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	return repo
}

// A copy has the digest, the content and the evidence of the original, wherever it is.
func TestCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for name, open := range destinations(t, w) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := oci.New(func(_ context.Context, name string) (oci.Repository, error) {
				if name == prod {
					return open(), nil
				}
				return oci.Local(w.blobs, w.refs, name), nil
			}, oci.Options{})
			for range 2 { // the second time finds everything there
				if err := store.Copy(t.Context(), staging, prod, w.release, w.evidence); err != nil {
					t.Fatal(err)
				}
			}
			wantSame(t, store, w)
		})
	}
}

// wantSame compares the release in prod with the one in staging.
func wantSame(t *testing.T, store *oci.Store, w *world) {
	t.Helper()
	got, err := store.Release(t.Context(), prod, string(w.release.Digest))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.release, got, cmpopts.IgnoreUnexported(artifact.Target{})); diff != "" {
		t.Errorf("release (-staging +prod):\n%s", diff)
	}
	if err := store.Rehash(t.Context(), prod, got); err != nil {
		t.Error(err)
	}
	for _, subject := range w.release.Subjects() {
		want, err := registrytest.Bundles(store.Evidence(t.Context(), staging, subject.Digest))
		if err != nil {
			t.Fatal(err)
		}
		got, err := registrytest.Bundles(store.Evidence(t.Context(), prod, subject.Digest))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
			t.Errorf("evidence for %s (-staging +prod):\n%s", subject.Name, diff)
		}
	}
}

// Everything works on a repository over the network alone.
func TestRemote(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	w := &world{parts: make(map[string]storage.PartRef)}
	w.store = oci.New(func(_ context.Context, name string) (oci.Repository, error) {
		return remoteRepository(t, server.URL, name), nil
	}, oci.Options{})
	w.fill(t, options{})
	if local := newWorld(t, options{}); local.release.Digest != w.release.Digest {
		t.Errorf("the release is %s over the network and %s in memory", w.release.Digest, local.release.Digest)
	}
	if err := w.store.Copy(t.Context(), staging, prod, w.release, w.evidence); err != nil {
		t.Fatal(err)
	}
	wantSame(t, w.store, w)
	if _, err := w.store.Fetch(t.Context(), prod, w.release.Engines[1].Digest, t.TempDir()); err != nil {
		t.Error(err)
	}
	_, err := w.store.Release(t.Context(), staging, "9.9.9")
	wantCode(t, err, registry.CodeNotFound, staging)
}

// Within one store a copy reads no blob.
func TestCopyMovesNoBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	b := &bad{Blobs: w.blobs, read: make(map[registry.Digest]bool)}
	if err := newStore(b, w.refs, oci.Options{}).Copy(t.Context(), staging, prod, w.release, nil); err != nil {
		t.Fatal(err)
	}
	for _, p := range w.engineParts() {
		for _, f := range p.Files {
			if b.read[f.Digest] {
				t.Errorf("%s was read", f.Path)
			}
		}
	}
}

func TestCopyRefusesOtherEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	limits := artifact.Subject{Name: "limits", Digest: w.parts["limits"].Digest, Size: w.parts["limits"].Size}
	other := w.attach(t, staging, evidence.PredicateSign, []artifact.Subject{limits})
	err := w.store.Copy(t.Context(), staging, prod, w.release, other)
	wantCode(t, err, registry.CodeInvalid, string(other[0]))
	err = w.store.Copy(t.Context(), staging, prod, w.release, []registry.Digest{w.release.Engines[0].Digest})
	wantCode(t, err, registry.CodeInvalid, "not a complete piece of evidence")
	if _, err := w.store.Release(t.Context(), prod, string(w.release.Digest)); err == nil {
		t.Error("the release was copied all the same")
	}
}

// forgetful is a repository that takes everything and drops some of it.
type forgetful struct {
	oci.Repository
	blobs, referrers bool
	asked            *atomic.Int64
}

func (f forgetful) Exists(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	if f.blobs {
		return false, nil
	}
	return f.Repository.Exists(ctx, desc)
}

func (f forgetful) Predecessors(ctx context.Context, desc ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	f.asked.Add(1)
	if f.referrers {
		return nil, nil
	}
	return f.Repository.Predecessors(ctx, desc)
}

// shortened is a repository that gives manifests another size.
type shortened struct{ oci.Repository }

func (s shortened) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	desc, err := s.Repository.Resolve(ctx, reference)
	desc.Size--
	return desc, err
}

// A copy is not believed: the destination has to show everything.
func TestCopyLooksAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	var asked atomic.Int64
	good := oci.Local(mem.NewBlobs(), mem.New(), prod)
	for _, test := range []struct {
		name string
		to   oci.Repository
		code registry.Code
		text string
	}{
		{"no blobs", forgetful{Repository: good, blobs: true, asked: &asked}, registry.CodeInternal, "does not exist"},
		{"no referrers", forgetful{Repository: good, referrers: true, asked: &asked}, registry.CodeConflict, "is not listed"},
		{"other size", shortened{good}, registry.CodeDigest, "was copied as"},
	} {
		store := oci.New(func(_ context.Context, name string) (oci.Repository, error) {
			if name == prod {
				return test.to, nil
			}
			return oci.Local(w.blobs, w.refs, name), nil
		}, oci.Options{})
		err := store.Copy(t.Context(), staging, prod, w.release, w.evidence)
		wantCode(t, err, test.code, prod, test.text)
	}
	if asked.Load() == 0 {
		t.Error("nobody asked for referrers")
	}
}

// What does not open says which repository it is.
func TestCopyCannotOpen(t *testing.T) {
	t.Parallel()
	store := oci.New(func(context.Context, string) (oci.Repository, error) { return nil, errors.New("no route") }, oci.Options{})
	err := store.Copy(t.Context(), staging, prod, artifact.Release{}, nil)
	wantCode(t, err, registry.CodeInternal, staging, "no route")
}

// A registry that cannot be reached is unavailable, and nothing worse.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	server.Close()
	store := oci.New(func(_ context.Context, name string) (oci.Repository, error) {
		return remoteRepository(t, server.URL, name), nil
	}, oci.Options{})
	_, err := store.Release(t.Context(), staging, "1.0.0")
	wantCode(t, err, registry.CodeUnavailable, staging)
}
