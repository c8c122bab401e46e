package oci_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// bad is storage in which one object was changed behind its digest, and which notes
// what is read.
type bad struct {
	storage.Blobs
	victim registry.Digest
	change func([]byte) []byte

	mu   sync.Mutex
	read map[registry.Digest]bool
}

// Open gives the bytes, or the changed ones.
func (b *bad) Open(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
	blob, size, err := b.Blobs.Open(ctx, d)
	if err != nil {
		return nil, 0, err
	}
	if d == b.victim {
		data := make([]byte, size)
		if _, err := blob.ReadAt(data, 0); err != nil && size == 0 {
			return nil, 0, err
		}
		changed := b.change(data)
		return &noting{reader{bytes.NewReader(changed)}, d, b}, int64(len(changed)), nil
	}
	return &noting{blob, d, b}, size, nil
}

type reader struct{ *bytes.Reader }

func (reader) Close() error { return nil }

// noting tells its store that it is read.
type noting struct {
	storage.Blob
	digest registry.Digest
	store  *bad
}

func (n *noting) Read(p []byte) (int, error) {
	n.store.mu.Lock()
	n.store.read[n.digest] = true
	n.store.mu.Unlock()
	return n.Blob.Read(p)
}

// operations are all ways to read a release and what belongs to it.
func operations(w *world) map[string]func(*oci.Store, context.Context) error {
	ops := map[string]func(*oci.Store, context.Context) error{
		"release": func(s *oci.Store, ctx context.Context) error {
			_, err := s.Release(ctx, staging, "1.0.0")
			return err
		},
		"sources": func(s *oci.Store, ctx context.Context) error {
			_, err := s.Sources(ctx, sources, w.sources)
			return err
		},
		"rehash": func(s *oci.Store, ctx context.Context) error { return s.Rehash(ctx, staging, w.release) },
		"copy": func(s *oci.Store, ctx context.Context) error {
			return s.Copy(ctx, staging, prod, w.release, w.evidence)
		},
	}
	for _, subject := range w.release.Subjects() {
		ops["evidence "+subject.Name] = func(s *oci.Store, ctx context.Context) error {
			_, err := registrytest.Bundles(s.Evidence(ctx, staging, subject.Digest))
			return err
		}
	}
	for name, ref := range w.parts {
		repository := staging
		if _, ok := map[artifact.PartKind]bool{"engine": true, "limits": true, "interface": true}[ref.Role]; !ok {
			repository = sources
		}
		ops["fetch "+name] = func(s *oci.Store, ctx context.Context) error {
			dir, err := os.MkdirTemp("", "mlpromote")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			_, err = s.Fetch(ctx, repository, ref.Digest, dir)
			return err
		}
	}
	return ops
}

// run makes a store over the changed storage whose prod repository is elsewhere, so
// that a copy has to move bytes, and runs one operation.
func (b *bad) run(ctx context.Context, w *world, op func(*oci.Store, context.Context) error) error {
	b.read = make(map[registry.Digest]bool)
	elsewhere, names := mem.NewBlobs(), mem.New()
	return op(oci.New(func(_ context.Context, name string) (oci.Repository, error) {
		if name == prod {
			return oci.Local(elsewhere, names, name), nil
		}
		return oci.Local(b, w.refs, name), nil
	}, oci.Options{}), ctx)
}

// Whatever byte of whatever object is changed: every operation that reads the object
// says so, any other does not notice, and no object is read by none.
func TestTampering(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	ops := operations(w)
	reads := make(map[string]map[registry.Digest]bool)
	covered := make(map[registry.Digest]bool)
	for name, op := range ops {
		clean := &bad{Blobs: w.blobs}
		if err := clean.run(t.Context(), w, op); err != nil {
			t.Fatalf("%s of what is intact: %v", name, err)
		}
		reads[name] = clean.read
		maps.Copy(covered, clean.read)
	}
	var objects []registry.Digest
	for d, err := range w.blobs.Digests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, d)
		if !covered[d] {
			t.Errorf("nothing ever reads %s: %s", d, stored(t, w.blobs, d))
		}
	}
	slices.Sort(objects)
	names := slices.Sorted(maps.Keys(ops))
	rapid.Check(t, func(t *rapid.T) {
		b := &bad{Blobs: w.blobs, victim: rapid.SampledFrom(objects).Draw(t, "object"), change: drawChange(t)}
		other := rapid.SampledFrom(names).Draw(t, "other operation")
		for _, name := range names {
			if !reads[name][b.victim] && name != other {
				continue
			}
			err := b.run(context.Background(), w, ops[name])
			if want := reads[name][b.victim]; registry.HasCode(err, registry.CodeDigest) != want || (err == nil) == want {
				t.Fatalf("%s with a changed %s: want a digest error: %t; got %v", name, b.victim, want, err)
			}
		}
	})
}

// drawChange draws a way to change an object: flip bits, cut off, append.
func drawChange(t *rapid.T) func([]byte) []byte {
	at := rapid.IntRange(0, 1<<20).Draw(t, "offset")
	mask := byte(rapid.IntRange(1, 255).Draw(t, "mask"))
	kind := rapid.SampledFrom([]string{"flip", "flip", "cut", "append"}).Draw(t, "kind")
	return func(data []byte) []byte {
		out := bytes.Clone(data)
		switch kind {
		case "cut":
			return out[:at%len(out)]
		case "append":
			return append(out, mask)
		}
		out[at%len(out)] ^= mask
		return out
	}
}

// A file that turns out wrong is removed, and the message says what it was.
func TestFetchRemovesBadFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	p := w.engineParts()[0]
	b := &bad{Blobs: w.blobs, victim: p.Files[0].Digest,
		change: func(data []byte) []byte { return append(bytes.Clone(data[1:]), '!') }, read: map[registry.Digest]bool{}}
	dir := t.TempDir()
	_, err := newStore(b, w.refs, oci.Options{}).Fetch(t.Context(), staging, w.release.Engines[0].Digest, dir)
	wantCode(t, err, registry.CodeDigest, staging, "file model.onnx of engine linux-amd64-v1/fp32", string(p.Files[0].Digest))
	if len(registry.Hints(err)) == 0 {
		t.Error("nothing says what to do")
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// broken is storage whose reads fail: that is no evidence of tampering.
type broken struct{ storage.Blobs }

func (b broken) Open(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
	blob, size, err := b.Blobs.Open(ctx, d)
	return failing{blob}, size, err
}

type failing struct{ storage.Blob }

func (failing) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestBrokenReadIsNoTampering(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	_, err := newStore(broken{w.blobs}, w.refs, oci.Options{}).Release(t.Context(), staging, "1.0.0")
	wantCode(t, err, registry.CodeInternal, "release index")
}

// A reading that is no longer wanted ends.
func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	ctx, cancel := context.WithCancel(t.Context())
	store := newStore(w.blobs, w.refs, oci.Options{Progress: func(int64, int64) { cancel() }})
	if err := store.Rehash(ctx, staging, w.release); err == nil || registry.HasCode(err, registry.CodeDigest) {
		t.Errorf("got %v", err)
	}
}
