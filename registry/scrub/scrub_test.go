package scrub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/s3"
	"mlpromote.dev/mlpromote/registry/scrub"
	"mlpromote.dev/mlpromote/registry/storage"
)

// scrubbed has bytes that can be damaged, and counts reads.
type scrubbed struct {
	*mem.Blobs
	mu      sync.Mutex
	changed map[registry.Digest]bool
	down    bool
	opened  []registry.Digest
}

func (s *scrubbed) Open(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, 0, registry.Errorf(registry.CodeUnavailable, "the storage does not answer")
	}
	s.opened = append(s.opened, d)
	blob, size, err := s.Blobs.Open(ctx, d)
	if err == nil && s.changed[d] {
		blob = flipped{blob}
	}
	return blob, size, err
}

// take returns the digests that were opened since the last call.
func (s *scrubbed) take() []registry.Digest {
	s.mu.Lock()
	defer s.mu.Unlock()
	opened := s.opened
	s.opened = nil
	return opened
}

// flipped changes a byte in every read of content.
type flipped struct{ storage.Blob }

func (f flipped) Read(p []byte) (int, error) {
	n, err := f.Blob.Read(p)
	if n > 0 {
		p[0] ^= 1
	}
	return n, err
}

// world is a registry with a promoted release, and its scrubber.
type world struct {
	config  scrub.Config
	db      *mem.DB
	blobs   *scrubbed
	clock   *registrytest.Clock
	release artifact.Release
	leases  storage.Leases

	mu              sync.Mutex
	found, repaired []storage.Damage
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{db: mem.New(), clock: registrytest.NewClock(), blobs: &scrubbed{Blobs: mem.NewBlobs(), changed: make(map[registry.Digest]bool)}}
	w.db.Now = w.clock.Now
	store := oci.New(func(_ context.Context, name string) (oci.Repository, error) {
		return oci.Local(w.blobs, w.db, name), nil
	}, oci.Options{})
	built := registrytest.Build{Version: "1.0.0"}.Store(t, store)
	var err error
	if w.release, err = store.Release(t.Context(), "staging/"+registrytest.Model, string(built)); err != nil {
		t.Fatal(err)
	}
	if err := w.db.SetTag(t.Context(), "staging/"+registrytest.Model, "1.0.0", built); err != nil {
		t.Fatal(err)
	}
	change := storage.Change{
		Event: history.Event{
			Time: w.clock.Now(), Kind: history.EventPublish, Environment: "staging", Model: registrytest.Model, Version: "1.0.0", Release: built,
		},
		DecisionBasis: registrytest.HeadAlone("staging", registrytest.Model, ""), Move: &storage.HeadMove{},
	}
	if _, err := w.db.Apply(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	w.leases = w.db
	w.config = scrub.Config{
		Blobs: w.blobs, Inventory: w.db, Store: w.db, Catalog: w.db, Clock: w.db,
		Damages: mem.NewTable[storage.Damage](), States: mem.NewTable[storage.ScrubState](),
		Found: func(_ context.Context, d storage.Damage) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.found = append(w.found, d)
		},
		Repaired: func(_ context.Context, d storage.Damage) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.repaired = append(w.repaired, d)
		},
	}
	w.blobs.take()
	return w
}

func (w *world) scrubber(t *testing.T) *scrub.Scrubber {
	t.Helper()
	s, err := scrub.New(w.config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pass makes a pass and returns the damage that it found for the first time.
func (w *world) pass(t *testing.T) (scrub.Result, []storage.Damage) {
	t.Helper()
	did, err := w.scrubber(t).Pass(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.found
	w.found = nil
	return did, found
}

// held is all digests that repositories hold.
func (w *world) held(t *testing.T) []registry.Digest {
	t.Helper()
	all, err := w.db.HeldDigests(t.Context(), "", time.Time{}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// engine is the manifest of an engine.
func (w *world) engine(*testing.T) registry.Digest { return w.release.Engines[0].Digest }

// file is a file of an engine.
func (w *world) file(t *testing.T) registry.Digest {
	t.Helper()
	blob, size, err := w.blobs.Blobs.Open(t.Context(), w.engine(t))
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, size)
	if _, err := blob.Read(raw); err != nil {
		t.Fatal(err)
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m.Layers[0].Digest
}

func (w *world) damage(t *testing.T, d registry.Digest, damaged bool) {
	t.Helper()
	w.blobs.mu.Lock()
	defer w.blobs.mu.Unlock()
	w.blobs.changed[d] = damaged
}

// A pass reads every digest once, finds no damage in whole content, and records when it ended.
func TestPass(t *testing.T) {
	t.Parallel()
	w := setup(t)
	did, found := w.pass(t)
	held, opened := w.held(t), w.blobs.take()
	if !slices.Equal(opened, held) || did.Checked != int64(len(held)) || did.Bytes == 0 || did.Damaged+len(found) != 0 {
		t.Errorf("read %d of %d digests, result %+v, found %v", len(opened), len(held), did, found)
	}
	state, err := w.scrubber(t).State(t.Context())
	if err != nil || state.Finished.IsZero() || state.Position != "" || !state.Started.IsZero() {
		t.Errorf("state %+v, error %v, want a finished pass and none under way", state, err)
	}
}

// Damage is reported once, with the release that needs the content, and again when it is
// repaired.
func TestDamage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		which  func(*world, *testing.T) registry.Digest
		damage func(*world, *testing.T, registry.Digest)
		kind   storage.DamageKind
	}{
		"a changed engine": {(*world).engine, func(w *world, t *testing.T, d registry.Digest) { w.damage(t, d, true) }, storage.DamageChanged},
		"a changed release": {
			func(w *world, _ *testing.T) registry.Digest { return w.release.Digest },
			func(w *world, t *testing.T, d registry.Digest) { w.damage(t, d, true) }, storage.DamageChanged,
		},
		"a missing file": {(*world).file, func(w *world, t *testing.T, d registry.Digest) {
			if err := w.blobs.Delete(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}, storage.DamageMissing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			d := c.which(w, t)
			blob, size, err := w.blobs.Blobs.Open(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			content := make([]byte, size)
			if _, err := blob.Read(content); err != nil {
				t.Fatal(err)
			}
			c.damage(w, t, d)
			did, found := w.pass(t)
			want := []storage.AffectedRelease{{Environment: "staging", Model: registrytest.Model,
				Release: w.release.Digest, Tags: []string{"1.0.0"}, Head: true}}
			if did.Damaged != 1 || len(found) != 1 || found[0].Digest != d || found[0].Kind != c.kind ||
				fmt.Sprint(found[0].Releases) != fmt.Sprint(want) {
				t.Fatalf("result %+v, found %+v, want %s of %s with %+v", did, found, c.kind, d, want)
			}
			if did, found := w.pass(t); did.Damaged != 1 || len(found) != 0 {
				t.Errorf("again: result %+v, found %+v, want 1 and nothing new", did, found)
			}
			w.damage(t, d, false)
			if err := w.blobs.Put(t.Context(), d, size, bytes.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			if did, _ := w.pass(t); did.Damaged != 0 || did.Repaired != 1 || len(w.repaired) != 1 {
				t.Errorf("repaired: result %+v, told %v", did, w.repaired)
			}
			if left, err := w.config.Damages.List(t.Context(), "", 10); err != nil || len(left) != 0 {
				t.Errorf("damage that is left: %v, error %v", left, err)
			}
		})
	}
}

// An interrupted pass continues after the last digest that it read, in another process.
func TestPassGoesOn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	held := w.held(t)
	ctx, cancel := context.WithCancel(t.Context())
	checked := 0
	w.config.Progress = func(int64) {
		if checked++; checked == len(held)/2 {
			cancel()
		}
	}
	if _, err := w.scrubber(t).Pass(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got error %v, want that of the context", err)
	}
	first := w.blobs.take()
	w.config.Progress = nil
	if _, err := w.scrubber(t).Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := w.blobs.take()
	if overlap := len(first) + len(second) - len(held); overlap < 0 || overlap > 1 || !slices.Equal(second, held[len(held)-len(second):]) {
		t.Errorf("the first pass read %d and the second %d of %d digests, want all and one twice at most", len(first), len(second), len(held))
	}
}

// A storage that does not answer is not damage. The pass continues where it was.
func TestStorageDown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.blobs.down = true
	if _, err := w.scrubber(t).Pass(t.Context()); registry.CodeOf(err) != registry.CodeUnavailable {
		t.Errorf("got error %v, want CodeUnavailable", err)
	}
	w.blobs.down = false
	if did, found := w.pass(t); len(found) != 0 || did.Checked != int64(len(w.held(t))) {
		t.Errorf("result %+v, found %v, want all and nothing", did, found)
	}
}

// vanishing is content that is removed from repositories while it is read.
type vanishing struct{ storage.Inventory }

func (v vanishing) Holders(context.Context, registry.Digest) ([]string, error) { return nil, nil }

// Content that is collected while it is read is not damage.
func TestCollectedMeanwhile(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.config.Inventory = vanishing{w.db}
	if err := w.blobs.Delete(t.Context(), w.file(t)); err != nil {
		t.Fatal(err)
	}
	if did, found := w.pass(t); did.Damaged+len(found) != 0 {
		t.Errorf("result %+v, found %v, want no damage", did, found)
	}
}

// Damage of content that no repository holds any more is deleted.
func TestDamageIsForgotten(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stale := digest.FromString("gone")
	if err := w.config.Damages.Put(t.Context(), string(stale), storage.Damage{Digest: stale}); err != nil {
		t.Fatal(err)
	}
	w.pass(t)
	if _, err := w.config.Damages.Get(t.Context(), string(stale)); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("got error %v, want CodeNotFound", err)
	}
}

// Scrubbing does not count as use: content marked for collection stays marked.
func TestScrubbingIsNotUse(t *testing.T) {
	t.Parallel()
	w := setup(t)
	repository := "staging/" + registrytest.Model
	before, err := w.db.Records(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	var keys []storage.GCRecordKey
	for _, h := range before {
		keys = append(keys, h.Key())
	}
	err = w.db.UpdateRecords(t.Context(), repository, func([]storage.GCRecord) (storage.GCChanges, error) {
		return storage.GCChanges{At: w.clock.Now(), Mark: keys}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.damage(t, w.release.Engines[0].Digest, true)
	w.pass(t)
	after, err := w.db.Records(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range after {
		if h.Marked.IsZero() {
			t.Errorf("%s counts as used, since it was scrubbed", h.Digest)
		}
	}
}

// Read reads only content added since a time.
func TestReadSince(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.clock.Pass(time.Hour)
	since := w.clock.Now()
	content := []byte("new")
	d := digest.FromBytes(content)
	if err := errors.Join(w.blobs.Put(t.Context(), d, 3, bytes.NewReader(content)), w.db.AddBlob(t.Context(), "staging/x", d, 3)); err != nil {
		t.Fatal(err)
	}
	w.blobs.take()
	did, err := w.scrubber(t).Read(t.Context(), since)
	if opened := w.blobs.take(); err != nil || did.Checked != 1 || !slices.Equal(opened, []registry.Digest{d}) {
		t.Errorf("result %+v, read %v, error %v, want %s alone", did, opened, err, d)
	}
}

// One of two replicas makes the passes. The other continues when the first is gone.
func TestReplicas(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ended := make(chan string, 10)
	start := func(name string) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		b := scrub.NewBackground(scrub.Background{
			Scrubber: w.scrubber(t), Leases: w.leases, Holder: name, Interval: time.Nanosecond, Tick: time.Millisecond,
			Ended:  func(context.Context, scrub.Result, time.Duration, error) { ended <- name },
			Status: func(context.Context, int, time.Time) {},
		})
		done := make(chan struct{})
		go func() { defer close(done); b.Run(ctx) }()
		return func() { cancel(); <-done }
	}
	w.clock.Pass(time.Second)
	stopFirst := start("first")
	if got := <-ended; got != "first" {
		t.Errorf("%s made the first pass, want the first", got)
	}
	stopSecond := start("second")
	defer stopSecond()
	stopFirst()
	for len(ended) > 0 {
		<-ended
	}
	w.clock.Pass(time.Second)
	if got := <-ended; got != "second" {
		t.Errorf("%s makes the next pass, want the second", got)
	}
}

// A pass that ended while the clock was years ahead does not delay the next ones.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const ahead = 10 * 365 * 24 * time.Hour
	w.clock.Pass(ahead)
	w.pass(t)
	w.clock.Pass(-ahead)
	ended := make(chan struct{}, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	b := scrub.NewBackground(scrub.Background{
		Scrubber: w.scrubber(t), Leases: w.leases, Holder: "x", Interval: time.Hour, Tick: time.Millisecond,
		Ended: func(context.Context, scrub.Result, time.Duration, error) {
			select {
			case ended <- struct{}{}:
			default:
			}
		},
		Status: func(context.Context, int, time.Time) {},
	})
	done := make(chan struct{})
	go func() { defer close(done); b.Run(ctx) }()
	select {
	case <-ended:
	case <-done:
		t.Error("no pass is made until the clock is where it was")
	}
	cancel()
	<-done
}

// Content of which a client was sent wrong bytes is checked out of turn.
func TestSuspect(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.pass(t)
	d := w.release.Engines[0].Digest
	w.damage(t, d, true)
	known := make(chan int, 100)
	b := scrub.NewBackground(scrub.Background{
		Scrubber: w.scrubber(t), Leases: w.leases, Holder: "x", Interval: time.Hour, Tick: time.Hour,
		Ended:  func(context.Context, scrub.Result, time.Duration, error) {},
		Status: func(_ context.Context, n int, _ time.Time) { known <- n },
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); b.Run(ctx) }()
	b.Suspect(d)
	for n := range iter.Seq[int](func(yield func(int) bool) {
		for yield(<-known) {
		}
	}) {
		if n == 1 {
			break
		}
	}
	cancel()
	<-done
}

// The scrubber keeps its rate, except for the first buffer.
func TestPace(t *testing.T) {
	t.Parallel()
	w := setup(t)
	content := make([]byte, 1<<20)
	d := digest.FromBytes(content)
	if err := errors.Join(w.blobs.Put(t.Context(), d, 1<<20, bytes.NewReader(content)), w.db.AddBlob(t.Context(), "staging/x", d, 1<<20)); err != nil {
		t.Fatal(err)
	}
	w.config.Rate = 1 // byte a second
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	did, err := w.scrubber(t).Read(ctx, time.Time{})
	if err == nil || did.Bytes > 300<<10 {
		t.Errorf("read %d bytes at a byte a second, error %v, want it to stop", did.Bytes, err)
	}
}

// Objects of a bucket are read like files.
func TestBucket(t *testing.T) {
	t.Parallel()
	server := registrytest.StartS3Server(t)
	config, err := s3.ParseURL(server.URL("scrub"))
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := s3.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	w := setup(t)
	w.config.Blobs = bucket
	for _, d := range w.held(t) {
		blob, size, err := w.blobs.Blobs.Open(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if err := bucket.Put(t.Context(), d, size, blob); err != nil {
			t.Fatal(err)
		}
	}
	if did, found := w.pass(t); did.Checked != int64(len(w.held(t))) || len(found) != 0 {
		t.Fatalf("result %+v, found %v, want all and nothing", did, found)
	}
	changed, gone := w.file(t), w.engine(t)
	object := ""
	err = filepath.WalkDir(server.Folder("scrub"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == changed.Encoded() {
			object = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(object, []byte("other bytes"), 0o600), bucket.Delete(t.Context(), gone)); err != nil {
		t.Fatal(err)
	}
	_, found := w.pass(t)
	kinds := make(map[registry.Digest]storage.DamageKind)
	for _, d := range found {
		kinds[d.Digest] = d.Kind
	}
	if len(kinds) != 2 || kinds[changed] != storage.DamageChanged || kinds[gone] != storage.DamageMissing {
		t.Errorf("found %v, want %s changed and %s missing", kinds, changed, gone)
	}
}
