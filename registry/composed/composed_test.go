package composed_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/composed"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Content without recipes is as it is without the wrapper.
func TestBlobs(t *testing.T) {
	t.Parallel()
	registrytest.TestBlobs(t, func(*testing.T) (storage.RepairableBlobs, registrytest.Damage) {
		stored := mem.NewBlobs()
		return composed.Repairable(stored, mem.New(), 0), func(_ *testing.T, d registry.Digest) { stored.Damage(d) }
	})
}

func large(seed uint64, n int) string {
	random := rand.New(rand.NewPCG(seed, 0))
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(random.Uint32())
	}
	return string(raw)
}

// A collector leaves each layer once, and it is read as it was: all of it, any range, and by any reader, from any storage.
func TestLayerIsRead(t *testing.T) {
	t.Parallel()
	for kind, open := range stores() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, open(t))
			for seed, contents := range []map[string]string{
				{"model.onnx": large(1, 70_000)},
				{"model.onnx": large(2, 512*9), "empty": "", "a/b/c": "c", "same": "twice the same", "sam": "twice the same", strings.Repeat("long/", 30) + "é": "x"},
			} {
				_, layer := w.engine(t, contents)
				want := read(t, w.stored, layer)
				if did := w.collect(t, true); did.Composed != 1 || did.ComposedBytes != int64(len(want)) || did.Blobs != 0 {
					t.Fatalf("collected %+v, want the own bytes of one layer of %d", did, len(want))
				}
				if has(t, w.stored, layer) {
					t.Fatal("the layer has own bytes")
				}
				if got := read(t, w.blobs, layer); !bytes.Equal(got, want) {
					t.Fatal("the layer has other bytes than before")
				}
				b, _, err := w.blobs.Open(t.Context(), layer)
				must(t, err)
				if kind != "object store" {
					must(t, iotest.TestReader(b, want)) // it makes thousands of requests
				}
				random := rand.New(rand.NewPCG(uint64(seed), 0))
				for range 50 {
					checkRange(t, b, want, random.IntN(len(want)+1), random.IntN(3000))
				}
				must(t, b.Close())
			}
			if did := w.collect(t, true); did.Composed != 0 {
				t.Errorf("then collected %+v, want nothing", did)
			}
		})
	}
}

// checkRange reads a range in each way.
func checkRange(t *testing.T, b storage.Blob, want []byte, from, n int) {
	t.Helper()
	end := min(from+n, len(want))
	got := make([]byte, n)
	k, err := b.ReadAt(got, int64(from))
	if !bytes.Equal(got[:k], want[from:end]) || (k < n) != errors.Is(err, io.EOF) || err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("ReadAt %d of %d: got %d bytes, error %v", n, from, k, err)
	}
	at, err := b.Seek(int64(from-len(want)), io.SeekEnd)
	must(t, err)
	var sent bytes.Buffer
	did, err := b.(*composed.Blob).SendTo(&sent, int64(end-from))
	must(t, err)
	if at != int64(from) || did != int64(end-from) || !bytes.Equal(sent.Bytes(), want[from:end]) {
		t.Errorf("SendTo %d of %d: at %d, sent %d bytes", n, from, at, did)
	}
	if at, err = b.Seek(0, io.SeekCurrent); err != nil || at != int64(end) {
		t.Errorf("after SendTo it is at %d, error %v, want %d", at, err, end)
	}
	if _, err := b.Seek(-1, io.SeekStart); err == nil {
		t.Error("it seeks before its beginning")
	}
	if _, err := b.ReadAt(got, -1); err == nil {
		t.Error("it reads before its beginning")
	}
	if at == int64(len(want)) {
		if did, err := b.(*composed.Blob).SendTo(&sent, 1); did != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("SendTo at the end: %d bytes, error %v, want none and EOF", did, err)
		}
	}
}

// What is stored twice is composed, and nothing else.
func TestSurplus(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range 33 {
		many[strings.Repeat("f", i+1)] = large(uint64(i), 200)
	}
	for name, c := range map[string]struct {
		contents map[string]string
		change   func(t *testing.T, w *world, stored *mem.Blobs, engine, layer registry.Digest)
		want     bool
	}{
		"an engine":      {contents: map[string]string{"model.onnx": large(1, 4096)}, want: true},
		"a small layer":  {contents: map[string]string{"model.onnx": large(1, 900)}},
		"too many files": {contents: many},
		"a damaged file": {contents: map[string]string{"model.onnx": large(1, 4096)},
			change: func(t *testing.T, _ *world, stored *mem.Blobs, _, _ registry.Digest) {
				stored.Damage(digest.FromString(large(1, 4096)))
			}},
		"a missing file": {contents: map[string]string{"model.onnx": large(1, 4096)},
			change: func(t *testing.T, _ *world, stored *mem.Blobs, _, _ registry.Digest) {
				must(t, stored.Delete(t.Context(), digest.FromString(large(1, 4096))))
			}},
		"a missing engine": {contents: map[string]string{"model.onnx": large(1, 4096)},
			change: func(t *testing.T, _ *world, stored *mem.Blobs, engine, _ registry.Digest) {
				must(t, stored.Delete(t.Context(), engine))
			}},
		"a file that is being removed": {contents: map[string]string{"model.onnx": large(1, 4096)},
			change: func(t *testing.T, w *world, _ *mem.Blobs, _, _ registry.Digest) {
				d := digest.FromString(large(1, 4096))
				must(t, w.db.RemoveBlob(t.Context(), repository, d))
				must(t, w.db.Mark(t.Context(), w.now, []registry.Digest{d}))
				begun, err := w.db.BeginRemoval(t.Context(), storage.RemovalRequest{ID: "x", Digests: []registry.Digest{d}, Before: w.now, Lasting: time.Minute})
				if err != nil || len(begun) != 1 {
					t.Fatal(begun, err)
				}
			}},
		// The own bytes are what is damaged: the recipe repairs them.
		"a damaged layer": {contents: map[string]string{"model.onnx": large(1, 4096)}, want: true,
			change: func(_ *testing.T, _ *world, stored *mem.Blobs, _, layer registry.Digest) { stored.Damage(layer) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := mem.NewBlobs()
			w := newWorld(t, stored)
			engine, layer := w.engine(t, c.contents)
			before := read(t, stored, layer)
			if c.change != nil {
				c.change(t, w, stored, engine, layer)
			}
			for range 2 {
				if got := slices.Contains(w.surplus(t, time.Time{}), layer); got != c.want {
					t.Errorf("the layer is surplus: %v, want %v", got, c.want)
				}
			}
			_, err := w.db.Recipe(t.Context(), layer)
			if (err == nil) != c.want {
				t.Errorf("it has a recipe: %v, want %v", err == nil, c.want)
			}
			if c.want {
				must(t, stored.Delete(t.Context(), layer))
				before = read(t, w.blobs, layer)
			}
			if c.want && digest.FromBytes(before) != layer {
				t.Error("it is composed of other bytes")
			}
		})
	}
}

// A part that a broken disk cannot read costs nothing, and does not end the collection: other layers are composed. A storage that does
// not answer ends it.
func TestUnreadablePart(t *testing.T) {
	t.Parallel()
	broken := errors.New("input/output error")
	for name, c := range map[string]struct {
		opens, reads error
		ends         bool
	}{
		"not opened": {opens: broken},
		"not read":   {reads: broken},
		"no answer":  {reads: registry.Errorf(registry.CodeUnavailable, "try again"), ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, mem.NewBlobs())
			_, bad := w.engine(t, map[string]string{"model.onnx": large(1, 4096)})
			_, good := w.engine(t, map[string]string{"model.onnx": large(2, 4096)})
			disk := failing{w.stored, digest.FromString(large(1, 4096)), c.opens, c.reads}
			var got []registry.Digest
			var failed error
			for d, err := range composed.NewComposer(w.db, disk, w.db, least).Surplus(t.Context(), time.Time{}) {
				if err != nil {
					failed = err
					break
				}
				got = append(got, d)
			}
			if slices.Contains(got, bad) || !c.ends && !slices.Equal(got, []registry.Digest{good}) || c.ends != (failed != nil) {
				t.Errorf("surplus is %v, error %v, want %s and no error: %v", got, failed, good, !c.ends)
			}
		})
	}
}

// failing is storage that cannot read one digest.
type failing struct {
	storage.Blobs
	digest       registry.Digest
	opens, reads error
}

func (f failing) Open(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
	if d == f.digest && f.opens != nil {
		return nil, 0, f.opens
	}
	b, size, err := f.Blobs.Open(ctx, d)
	if d == f.digest && err == nil {
		b = unread{b, f.reads}
	}
	return b, size, err
}

type unread struct {
	storage.Blob
	err error
}

func (u unread) Read([]byte) (int, error) { return 0, u.err }

// An engine that is deleted between the recipe and the removal of own bytes leaves its files to the layer, which another repository
// holds alone. That repository reads the layer for as long as it has it.
func TestEngineDeletedAfterRecipe(t *testing.T) {
	t.Parallel()
	for name, composes := range map[string]bool{"own bytes are there": false, "own bytes are gone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, mem.NewBlobs())
			_, layer := w.engine(t, map[string]string{"model.onnx": large(1, 4096)})
			want := read(t, w.stored, layer)
			must(t, w.db.AddBlob(t.Context(), "prod/m", layer, int64(len(want))))
			// The collector cannot read the manifest, so it keeps all that the repository has.
			image := digest.FromString("an image with the same layer, that is no image form")
			must(t, w.db.PutManifest(t.Context(), "prod/m", storage.Manifest{Digest: image, Size: 1}, "1.0.0"))
			if got := w.surplus(t, w.now); len(got) != 0 {
				t.Fatalf("surplus is %v, want nothing yet", got)
			}
			if composes {
				w.now = w.now.Add(25 * time.Hour)
				if did := w.collect(t, false); did.Composed != 1 {
					t.Fatalf("collected %+v, want the own bytes of the layer", did)
				}
			}
			held, err := w.db.Records(t.Context(), repository)
			must(t, err)
			for _, h := range held {
				if h.Manifest {
					must(t, w.db.DeleteManifest(t.Context(), repository, h.Digest))
				} else {
					must(t, w.db.RemoveBlob(t.Context(), repository, h.Digest))
				}
			}
			for range 4 {
				w.now = w.now.Add(25 * time.Hour)
				w.collect(t, false)
				if !bytes.Equal(read(t, w.blobs, layer), want) {
					t.Fatal("the layer has other bytes")
				}
			}
		})
	}
}

// What manifests say is not believed: bytes that are not those of the layer make no recipe.
func TestForgedLayer(t *testing.T) {
	t.Parallel()
	stored := mem.NewBlobs()
	w := newWorld(t, stored)
	_, honest := w.engine(t, map[string]string{"model.onnx": large(1, 4096)})
	raw := read(t, stored, honest)
	raw[700] ^= 1 // in the file
	forged := digest.FromBytes(raw)
	must(t, stored.Put(t.Context(), forged, int64(len(raw)), bytes.NewReader(raw)))
	for m, err := range w.db.AllManifests(t.Context()) {
		must(t, err)
		document := read(t, stored, m.Manifest.Digest)
		if !bytes.Contains(document, []byte(honest)) {
			continue
		}
		document = bytes.ReplaceAll(document, []byte(honest), []byte(forged))
		m.Manifest.Digest, m.Manifest.Size = digest.FromBytes(document), int64(len(document))
		must(t, stored.Put(t.Context(), m.Manifest.Digest, m.Manifest.Size, bytes.NewReader(document)))
		must(t, w.db.PutManifest(t.Context(), repository, m.Manifest, "forged"))
	}
	if got := w.surplus(t, time.Time{}); !slices.Equal(got, []registry.Digest{honest}) {
		t.Errorf("surplus is %v, want only %s", got, honest)
	}
	if _, err := w.db.Recipe(t.Context(), forged); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("the forged layer has a recipe: %v", err)
	}
}

// Own bytes are kept until readers and copies of the catalog that began before the recipe have ended. A collector that is killed
// after it has recorded a recipe loses nothing; the next one goes on.
func TestOwnBytesWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mem.NewBlobs())
	_, layer := w.engine(t, map[string]string{"model.onnx": large(1, 4096)})
	for range 2 { // it records the recipe, and finds it
		if got := w.surplus(t, w.now); len(got) != 0 {
			t.Errorf("surplus is %v, want nothing before the recipe is old", got)
		}
	}
	want := read(t, w.stored, layer)
	if !bytes.Equal(read(t, w.blobs, layer), want) {
		t.Error("beside its recipe, the layer has other bytes")
	}
	w.now = w.now.Add(25 * time.Hour)
	if got := w.surplus(t, w.now); !slices.Equal(got, []registry.Digest{layer}) {
		t.Errorf("surplus is %v, want %s", got, layer)
	}
	if did := w.collect(t, false); did.Composed != 1 || has(t, w.stored, layer) {
		t.Errorf("collected %+v, want the own bytes of the layer", did)
	}
	// It is composed again after it was stored again, and a catalog from before the recipe learns of it.
	must(t, w.stored.Put(t.Context(), layer, int64(len(want)), bytes.NewReader(want)))
	if did := w.collect(t, false); did.Composed != 1 || has(t, w.stored, layer) {
		t.Errorf("then collected %+v, want the own bytes of the layer", did)
	}
}

// A restored catalog, which is from before a recipe, learns it again.
func TestOlderCatalog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mem.NewBlobs())
	_, layer := w.engine(t, map[string]string{"model.onnx": large(1, 4096)})
	older := w.db.Clone()
	w.collect(t, true)
	w.db, w.composer = older, composed.NewComposer(older, w.stored, older, least)
	w.blobs = composed.Blobs(w.stored, older, least)
	if has(t, w.blobs, layer) {
		t.Fatal("the layer can be read without a recipe")
	}
	w.collect(t, false)
	if digest.FromBytes(read(t, w.blobs, layer)) != layer {
		t.Error("the layer has other bytes")
	}
	recipes, err := composed.Copy(t.Context(), older)
	must(t, err)
	if digest.FromBytes(read(t, composed.Blobs(w.stored, recipes, 0), layer)) != layer {
		t.Error("by a copied recipe, the layer has other bytes")
	}
	for d, err := range composed.Digests(t.Context(), recipes) {
		if err != nil || d != layer {
			t.Errorf("the copy has a recipe of %s, error %v, want only one of %s", d, err, layer)
		}
	}
}

// Who stores a layer that can be composed stores nothing, and repairs one that cannot.
func TestPutOfComposed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mem.NewBlobs())
	_, layer := w.engine(t, map[string]string{"model.onnx": large(1, 4096)})
	want := read(t, w.stored, layer)
	w.collect(t, true)
	unread := iotest.ErrReader(errors.New("read although it is there"))
	must(t, w.blobs.Put(t.Context(), layer, int64(len(want)), unread))
	if has(t, w.stored, layer) {
		t.Error("the layer was stored")
	}
	if err := w.blobs.Put(t.Context(), layer, 3, strings.NewReader("abc")); !registry.HasCode(err, registry.CodeDigest) {
		t.Errorf("other bytes: error %v, want %s", err, registry.CodeDigest)
	}
	if err := w.blobs.Delete(t.Context(), layer); !registry.HasCode(err, registry.CodeConflict) {
		t.Errorf("delete: error %v, want %s", err, registry.CodeConflict)
	}
	var all []registry.Digest
	for d, err := range w.blobs.Digests(t.Context()) {
		must(t, err)
		if slices.Contains(all, d) {
			t.Errorf("%s is listed twice", d)
		}
		all = append(all, d)
	}
	if !slices.Contains(all, layer) {
		t.Error("the layer is not listed")
	}
	part := digest.FromString(large(1, 4096))
	must(t, w.stored.Delete(t.Context(), part))
	if _, _, err := w.blobs.Open(t.Context(), layer); !registry.HasCode(err, registry.CodeNotFound) || !strings.Contains(err.Error(), string(part)) {
		t.Errorf("without a part: error %v, want %s that names it", err, registry.CodeNotFound)
	}
	must(t, w.blobs.Put(t.Context(), layer, int64(len(want)), bytes.NewReader(want)))
	if !bytes.Equal(read(t, w.blobs, layer), want) {
		t.Error("the layer was not repaired")
	}
}

// Nobody is sent to the own bytes of content that has a recipe: they are deleted while the URL is valid.
func TestRedirect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mem.NewBlobs())
	_, layer := w.engine(t, map[string]string{"model.onnx": large(1, 4096)})
	direct := composed.Blobs(direct{w.stored}, w.db, least).(interface {
		Redirect(ctx context.Context, d registry.Digest, expiry time.Duration) (string, bool, error)
	})
	if _, ok, err := direct.Redirect(t.Context(), layer, time.Minute); err != nil || !ok {
		t.Errorf("stored content: a URL: %v, error %v, want one", ok, err)
	}
	w.surplus(t, w.now) // records the recipe
	if url, ok, err := direct.Redirect(t.Context(), layer, time.Minute); err != nil || ok || url != "" {
		t.Errorf("content with a recipe: URL %q, error %v, want none", url, err)
	}
	if _, ok := composed.Blobs(w.stored, w.db, least).(interface {
		Redirect(ctx context.Context, d registry.Digest, expiry time.Duration) (string, bool, error)
	}); ok {
		t.Error("storage without URLs has some")
	}
}

type direct struct{ storage.Blobs }

func (direct) Redirect(context.Context, registry.Digest, time.Duration) (string, bool, error) {
	return "https://example.com", true, nil
}

// A part that has another size than its recipe wants is missing, so that clients push the content again. One that becomes
// shorter while it is read is damage.
func TestPartOfAnotherSize(t *testing.T) {
	t.Parallel()
	stored := mem.NewBlobs()
	part := digest.FromString("part")
	must(t, stored.Put(t.Context(), part, 4, strings.NewReader("part")))
	recipe := storage.Recipe{Digest: digest.FromString("layer"), Size: 5, Pieces: []storage.Piece{{Digest: part, Size: 5}}}
	if _, err := composed.Open(t.Context(), stored, recipe); !registry.HasCode(err, registry.CodeNotFound) || !strings.Contains(err.Error(), "another size") {
		t.Errorf("error %v, want %s", err, registry.CodeNotFound)
	}
	b, err := composed.Open(t.Context(), shrinking{stored}, recipe)
	must(t, err)
	defer b.Close()
	if _, err := io.ReadAll(b); !registry.HasCode(err, registry.CodeDigest) || !strings.Contains(err.Error(), string(part)) {
		t.Errorf("read: error %v, want %s that names the part", err, registry.CodeDigest)
	}
	if n, err := b.ReadAt(make([]byte, 5), 0); n != 4 || !registry.HasCode(err, registry.CodeDigest) {
		t.Errorf("read at: %d bytes, error %v, want 4 and %s", n, err, registry.CodeDigest)
	}
	_, err = b.Seek(0, io.SeekStart)
	must(t, err)
	if n, err := b.SendTo(io.Discard, 5); n != 4 || !registry.HasCode(err, registry.CodeDigest) {
		t.Errorf("send: %d bytes, error %v, want 4 and %s", n, err, registry.CodeDigest)
	}
}

// shrinking is storage that has one byte less than it says.
type shrinking struct{ storage.Blobs }

func (s shrinking) Open(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
	b, size, err := s.Blobs.Open(ctx, d)
	return b, size + 1, err
}
