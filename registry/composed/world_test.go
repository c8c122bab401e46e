package composed_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/composed"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/s3"
	"mlpromote.dev/mlpromote/registry/storage"
)

// server is an object store that the tests here share; nil if there is none.
var server *registrytest.S3Server

func TestMain(m *testing.M) {
	code, err := registrytest.WithS3Server(func(s *registrytest.S3Server) int {
		server = s
		return m.Run()
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// stores are the kinds of storage.
func stores() map[string]func(t testing.TB) registrytest.RemovableBlobs {
	return map[string]func(t testing.TB) registrytest.RemovableBlobs{
		"memory": func(testing.TB) registrytest.RemovableBlobs { return mem.NewBlobs() },
		"disk":   func(t testing.TB) registrytest.RemovableBlobs { return blob.NewDir(t.TempDir()) },
		"object store": func(t testing.TB) registrytest.RemovableBlobs {
			if server == nil {
				t.Skip("MLPROMOTE_S3SERVER names no program: make test builds one")
			}
			config, err := s3.ParseURL(server.URL(strings.ToLower(rand.Text())))
			must(t, err)
			bucket, err := s3.Open(t.Context(), config)
			must(t, err)
			return bucket
		},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	repository = "staging/m"
	least      = 4096 // bytes of a layer that is composed
)

// world is a registry whose layers are composed from a small size on.
type world struct {
	db       *mem.DB
	stored   registrytest.RemovableBlobs
	blobs    storage.Blobs // what can be read
	store    *oci.Store
	composer *composed.Composer
	now      time.Time
}

func newWorld(t testing.TB, stored registrytest.RemovableBlobs) *world {
	t.Helper()
	w := &world{db: mem.New(), stored: stored, now: time.Now().Truncate(time.Microsecond)}
	w.db.Now = func() time.Time { return w.now }
	w.blobs = composed.Blobs(stored, w.db, least)
	safe := gc.SafeStore{Garbage: w.db, Remover: stored}
	blobs, refs := safe.Blobs(w.blobs), safe.Refs(w.db, w.blobs)
	w.store = oci.New(func(_ context.Context, name string) (oci.Repository, error) { return oci.Local(blobs, refs, name), nil }, oci.Options{})
	w.composer = composed.NewComposer(w.db, stored, w.db, least)
	return w
}

// collect runs a collector that has the registry to itself.
func (w *world) collect(t testing.TB, alone bool) gc.Collected {
	t.Helper()
	c, err := gc.New(gc.Config{
		Environments: registrytest.Chain(), Store: w.db, Catalog: w.db, Intents: w.db, Blobs: w.stored, Remover: w.stored, Garbage: w.db, Clock: w.db,
		Owner: registrytest.Owned{}, Lock: registrytest.Owned{}, Retention: gc.DefaultRetention(), Alone: alone, Surplus: w.composer.Surplus,
	})
	must(t, err)
	did, err := c.Collect(t.Context())
	must(t, err)
	return did
}

// files returns files of a part.
func files(contents map[string]string) []storage.PartFile {
	var all []storage.PartFile
	for path, content := range contents {
		all = append(all, storage.PartFile{
			File: artifact.File{Path: path, Digest: digest.FromString(content), Size: int64(len(content))},
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
		})
	}
	return all
}

// engine stores an engine and its image form, and returns the digests of the engine and of its layer.
func (w *world) engine(t testing.TB, contents map[string]string) (engine, layer registry.Digest) {
	t.Helper()
	e := registrytest.MakeEngine("v3", "int8")
	some := digest.FromString("some")
	e.Reference, e.Sources, e.Limits, e.Interface = some, some, some, some
	part := storage.Part{Role: artifact.PartEngine, Model: "m", Format: "onnx", Engine: e, Files: files(contents)}
	ref, err := w.store.PutPart(t.Context(), repository, part)
	must(t, err)
	part.Role, part.Engine.Digest = artifact.PartImage, ref.Digest
	image, err := w.store.PutPart(t.Context(), repository, part)
	must(t, err)
	fetched, err := w.store.Fetch(t.Context(), repository, image.Digest, "")
	must(t, err)
	for i, d := range []registry.Digest{ref.Digest, image.Digest} {
		must(t, w.db.SetTag(t.Context(), repository, fmt.Sprint(d.Encoded()[:12], i), d))
	}
	return ref.Digest, fetched.Files[0].Digest
}

// surplus lists what the composer yields.
func (w *world) surplus(t testing.TB, before time.Time) []registry.Digest {
	t.Helper()
	var all []registry.Digest
	for d, err := range w.composer.Surplus(t.Context(), before) {
		must(t, err)
		all = append(all, d)
	}
	return all
}

func read(t testing.TB, blobs storage.Blobs, d registry.Digest) []byte {
	t.Helper()
	b, size, err := blobs.Open(t.Context(), d)
	must(t, err)
	defer b.Close()
	raw, err := io.ReadAll(b)
	must(t, err)
	if int64(len(raw)) != size {
		t.Errorf("%s has %d bytes, and says that it has %d", d, len(raw), size)
	}
	return raw
}

func has(t testing.TB, blobs storage.Blobs, d registry.Digest) bool {
	t.Helper()
	b, _, err := blobs.Open(t.Context(), d)
	if registry.HasCode(err, registry.CodeNotFound) {
		return false
	}
	must(t, err)
	must(t, b.Close())
	return true
}
