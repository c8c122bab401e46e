package service_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// world is a service over storage in memory, with hands on what it stands on.
type world struct {
	registrytest.Registry
	service *service.Service
	config  backend.Backend
	db      *mem.DB
	store   *mem.Blobs
	blobs   *blobs // store, as read
	refs    *refs
	far     *mem.DB  // names in the registry of external environments
	farRefs *losable // as seen from here
}

// setup makes a world over the environments of registrytest.Chain. Each edit changes
// the configuration before the service is made.
func setup(t *testing.T, edits ...func(c *backend.Backend)) *world {
	t.Helper()
	w := &world{db: mem.New(), store: mem.NewBlobs(), far: mem.New()}
	w.blobs = &blobs{Blobs: w.store}
	w.farRefs = &losable{refs{RepositoryRecords: w.far}}
	w.refs = &refs{RepositoryRecords: w.db}
	farBlobs := mem.NewBlobs()
	store := oci.New(func(_ context.Context, name string) (oci.Repository, error) {
		environment, _, _ := strings.Cut(name, "/")
		if e, err := w.config.Environments.Find(environment); err == nil && e.External() {
			return oci.Local(farBlobs, w.farRefs, name), nil
		}
		return oci.Local(w.blobs, w.refs, name), nil
	}, oci.Options{})
	w.Parts = store
	w.config = backend.Backend{
		RestrictionBundles: mem.NewTable[storage.RestrictionBundle](),
		Environments:       registrytest.Chain(), Catalog: w.db, Records: w.db, Listing: w.db, Intents: w.db, Content: store, Mirror: store, Manifests: w.refs,
		Tool: evidence.ToolIdentity{Name: "mlpromote", Version: "0.0.0"}, Now: clock(),
	}
	for _, edit := range edits {
		edit(&w.config)
	}
	w.Keys = registrytest.NewKeys(w.config.Environments.Trust)
	w.config.Verify, w.config.Sign = w.Keys.Verify, w.Keys.Sign
	w.serve(t)
	return w
}

// serve makes the service of the configuration as it is now.
func (w *world) serve(t *testing.T) {
	t.Helper()
	s, err := service.New(w.config)
	if err != nil {
		t.Fatal(err)
	}
	w.service, w.Interface = s, s
}

// proven is a release of a world that could be promoted.
func (w *world) proven(t *testing.T, b registrytest.Build) artifact.Release {
	t.Helper()
	r := w.Build(t, b)
	w.Prove(t, r)
	return r
}

// head is the head of prod, or the zero Head.
func (w *world) head(t *testing.T) history.Head {
	t.Helper()
	heads, err := w.db.Heads(t.Context(), "prod", registrytest.Model)
	if err != nil {
		t.Fatal(err)
	}
	if len(heads) == 0 {
		return history.Head{}
	}
	return heads[0]
}

// clock goes on by a second whenever it is looked at.
func clock() storage.Clock {
	var mu sync.Mutex
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}
}

// blobs is a store in which the bytes of some digests were changed.
type blobs struct {
	storage.Blobs
	flipped registry.Digest
}

func (b *blobs) Open(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
	blob, size, err := b.Blobs.Open(ctx, d)
	if err != nil || d != b.flipped {
		return blob, size, err
	}
	return flippedBlob{blob}, size, nil
}

// flippedBlob is a blob with one bit changed in every read.
type flippedBlob struct{ storage.Blob }

func (f flippedBlob) Read(p []byte) (int, error) {
	n, err := f.Blob.Read(p)
	if n > 0 {
		p[n/2] ^= 1
	}
	return n, err
}

func (f flippedBlob) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{f})
}

// refs is a store that has lost some manifests, and in which others were pushed.
type refs struct {
	storage.RepositoryRecords
	lost   map[registry.Digest]bool
	pushed map[registry.Digest]bool // by somebody
}

func (r *refs) Manifest(ctx context.Context, repository string, d registry.Digest) (storage.Manifest, error) {
	m, err := r.RepositoryRecords.Manifest(ctx, repository, d)
	if r.pushed[d] {
		m.Pusher = "token:ci"
	}
	return m, err
}

func (r *refs) Referrers(ctx context.Context, repository string, d registry.Digest,
	artifactType string, after registry.Digest) ([]storage.Manifest, error) {
	for {
		found, err := r.RepositoryRecords.Referrers(ctx, repository, d, artifactType, after)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		after = found[len(found)-1].Digest
		kept := slices.DeleteFunc(found, func(m storage.Manifest) bool { return r.lost[m.Digest] })
		if len(kept) > 0 {
			return kept, nil
		}
	}
}

// losable is a store in which a manifest that was lost is listed again when it is put again.
type losable struct{ refs }

func (l *losable) PutManifest(ctx context.Context, repository string, m storage.Manifest, tags ...string) error {
	delete(l.lost, m.Digest)
	return l.refs.PutManifest(ctx, repository, m, tags...)
}
