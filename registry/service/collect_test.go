package service_test

import (
	"context"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// collector is one over a world, a while from now.
func (w *world) collector(t *testing.T, in time.Duration, edits ...func(*gc.Config)) *gc.Collector {
	t.Helper()
	config := gc.Config{
		Environments: w.config.Environments, Store: w.db, Catalog: w.db, Intents: w.db, Blobs: w.blobs, Remover: w.store, Garbage: w.db,
		Owner: registrytest.Owned{}, Lock: registrytest.Owned{}, Retention: gc.DefaultRetention(), Clock: clockFunc(func() time.Time { return time.Now().Add(in) }),
	}
	for _, edit := range edits {
		edit(&config)
	}
	c, err := gc.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// clockFunc is the clock of a catalog.
type clockFunc storage.Clock

func (f clockFunc) CatalogTime(ctx context.Context) (time.Time, error) { return f(), ctx.Err() }

func alone(c *gc.Config) { c.Alone = true }

func collect(t *testing.T, c *gc.Collector) gc.Collected {
	t.Helper()
	did, err := c.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return did
}

// stored counts the blobs that there are.
func (w *world) stored(t *testing.T) int {
	t.Helper()
	n := 0
	for _, err := range w.blobs.Digests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

const days = 24 * time.Hour

// Of a registry in order nothing is collected, however old it is: heads, what they were
// before, all versions, their evidence and sources.
func TestCollectLeavesOrderAlone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	second := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	before := w.stored(t)
	for _, c := range []*gc.Collector{w.collector(t, 3000*days, alone), w.collector(t, 3000*days), w.collector(t, 4000*days)} {
		if did := collect(t, c); did.Manifests+did.Members+did.Blobs+did.Marked+len(did.SkippedRepositories) != 0 {
			t.Errorf("collected %+v, want nothing", did)
		}
	}
	if w.stored(t) != before {
		t.Errorf("%d blobs are left of %d", w.stored(t), before)
	}
	w.whole(t)
	for _, r := range []artifact.Release{first, second} {
		if err := w.config.Content.Rehash(t.Context(), "prod/"+registrytest.Model, r); err != nil {
			t.Error(err)
		}
		if _, err := w.Parts.Sources(t.Context(), "staging/"+registrytest.Model+"/sources", r.Sources); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "x"}); err != nil {
		t.Error(err)
	}
}

// A version that was built again in staging leaves the release that it had before, its
// engines and sources, to nobody. What history names as evidence stays.
func TestCollectReplacedRelease(t *testing.T) {
	t.Parallel()
	w := setup(t)
	old := w.proven(t, registrytest.Build{})
	oldEngines := contents(t, w, old)
	next := w.proven(t, registrytest.Build{Salt: "b"})
	if did := collect(t, w.collector(t, time.Hour, alone)); did.Manifests+did.Blobs != 0 {
		t.Errorf("what is an hour old was collected: %+v", did)
	}
	plan, err := w.collector(t, 2*days, alone).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	did := collect(t, w.collector(t, 2*days, alone))
	if did.Manifests != 9 || did.Blobs != plan.Blobs || did.Bytes != plan.Bytes || did.Blobs == 0 { // the release, three engines and their images, and the sources with their reference
		t.Errorf("collected %+v, planned were %d blobs with %d bytes", did, plan.Blobs, plan.Bytes)
	}
	if _, err := w.Release(t.Context(), "staging", registrytest.Model, string(old.Digest)); registry.CodeOf(err) != registry.CodeNotFound {
		t.Errorf("the old release: %v, want CodeNotFound", err)
	}
	if _, err := w.Parts.Sources(t.Context(), "staging/"+registrytest.Model+"/sources", old.Sources); registry.CodeOf(err) != registry.CodeNotFound {
		t.Errorf("the old sources: %v, want CodeNotFound", err)
	}
	gone := 0
	for _, d := range oldEngines {
		if _, _, err := w.blobs.Open(t.Context(), d); registry.CodeOf(err) == registry.CodeNotFound {
			gone++
		}
	}
	if gone == 0 {
		t.Error("no bytes of the old release are gone")
	}
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil || w.head(t).Release != next.Digest {
		t.Errorf("the new release cannot be promoted: %v", err)
	}
	w.whole(t)
}

// What was said about an engine counts again when the same engine is built again: neither
// is a quarantine forgotten by collecting, nor does a promotion miss evidence.
func TestCollectForgetsNoEvidence(t *testing.T) {
	t.Parallel()
	for name, quarantined := range map[string]bool{"proven": false, "quarantined": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			first := w.proven(t, registrytest.Build{})
			if quarantined {
				w.AttachTo(t, "staging", first, first.Engines[0].Digest, evidence.PredicateQuarantine, struct{}{})
			}
			w.proven(t, registrytest.Build{Salt: "b"})
			if did := collect(t, w.collector(t, 2*days, alone)); did.Manifests == 0 {
				t.Fatal("nothing was collected, so that nothing is built again")
			}
			if again := w.Build(t, registrytest.Build{}); again.Digest != first.Digest {
				t.Fatalf("built %s, want %s again", again.Digest, first.Digest)
			}
			_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
			if quarantined && (err == nil || !strings.Contains(err.Error(), "quarantine")) || !quarantined && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Beside others, what nothing needs goes a grace after that was found, unless somebody
// asked for it meanwhile.
func TestCollectWaits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	old := w.Build(t, registrytest.Build{})
	w.Build(t, registrytest.Build{Salt: "b"})
	steps := []struct {
		in   time.Duration
		want string
	}{{2 * days, "marked"}, {2*days + 23*time.Hour, "nothing"}}
	for _, s := range steps {
		did := collect(t, w.collector(t, s.in))
		if did.Manifests+did.Members+did.Blobs != 0 || (did.Marked > 0) != (s.want == "marked") {
			t.Errorf("in %v: %+v, want %s", s.in, did, s.want)
		}
	}
	engine := old.Engines[0].Digest
	if _, err := w.db.Manifest(t.Context(), "staging/"+registrytest.Model, engine); err != nil { // somebody asks
		t.Fatal(err)
	}
	did := collect(t, w.collector(t, 3*days+time.Hour))
	if did.Manifests != 6 || did.Marked == 0 {
		t.Errorf("%+v, want all of the release to go but the engine that was asked for, which is marked anew", did)
	}
	if _, err := w.Parts.Sources(t.Context(), "staging/"+registrytest.Model+"/sources", old.Sources); err != nil {
		t.Errorf("the sources of the engine: %v", err)
	}
	blob, _, err := w.blobs.Open(t.Context(), engine)
	if err != nil {
		t.Fatal("the engine was asked for and is gone")
	}
	_ = blob.Close()
	if did := collect(t, w.collector(t, 5*days)); did.Manifests != 1 || did.Blobs == 0 || did.Marked == 0 {
		t.Errorf("%+v, want the engine to go, and bytes, and now its sources to be marked", did)
	}
	if did := collect(t, w.collector(t, 7*days)); did.Manifests != 2 || did.Blobs == 0 {
		t.Errorf("%+v, want the sources to go, and the bytes of the engine", did)
	}
	if did := collect(t, w.collector(t, 9*days)); did.Blobs == 0 {
		t.Errorf("%+v, want the bytes of the sources to go", did)
	}
	if did := collect(t, w.collector(t, 900*days)); did.Manifests+did.Members+did.Blobs+did.Marked != 0 {
		t.Errorf("%+v, want nothing to be left to do", did)
	}
}

// Nobody can tell what a damaged manifest needs, so that its repository is left alone, and
// with it the sources of its model.
func TestCollectLeavesDamageAlone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Build(t, registrytest.Build{})
	w.Build(t, registrytest.Build{Salt: "b"})
	other := registrytest.Build{Model: "other"}
	w.Build(t, other)
	other.Salt = "b"
	w.Build(t, other)
	if err := w.blobs.Delete(t.Context(), r.Engines[1].Digest); err != nil {
		t.Fatal(err)
	}
	did := collect(t, w.collector(t, 2*days, alone))
	if len(did.SkippedRepositories) != 2 || did.SkippedRepositories[0].Repository != "staging/"+registrytest.Model ||
		!strings.HasSuffix(did.SkippedRepositories[1].Repository, "/sources") {
		t.Errorf("left alone: %v", did.SkippedRepositories)
	}
	if !strings.Contains(did.SkippedRepositories[0].Reason, string(r.Engines[1].Digest)) || did.Manifests == 0 {
		t.Errorf("%+v, want the damaged manifest to be named, and the other model's to be collected", did)
	}
	if _, err := w.db.Manifest(t.Context(), "staging/"+registrytest.Model, r.Digest); err != nil {
		t.Errorf("the damaged release: %v", err)
	}
	if _, err := w.Parts.Sources(t.Context(), "staging/"+registrytest.Model+"/sources", r.Sources); err != nil {
		t.Errorf("its sources: %v", err)
	}
}

// A history that was changed no longer says what must stay.
func TestCollectNeedsHistory(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	c := w.collector(t, 2*days, alone, func(c *gc.Config) { c.Catalog = forgetful{c.Catalog} })
	if _, err := c.Collect(t.Context()); registry.CodeOf(err) != registry.CodeTrust {
		t.Errorf("collect: %v, want CodeTrust", err)
	}
	if _, err := c.Plan(t.Context()); registry.CodeOf(err) != registry.CodeTrust {
		t.Errorf("plan: %v, want CodeTrust", err)
	}
}

// forgetful has lost the first row of its history.
type forgetful struct{ storage.Catalog }

func (f forgetful) History(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error] {
	q.After = 1
	return f.Catalog.History(ctx, q)
}

func TestNewCollectorRefuses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, edit := range map[string]func(*gc.Config){
		"no stock":        func(c *gc.Config) { c.Store = nil },
		"no owner":        func(c *gc.Config) { c.Owner = nil },
		"no lock":         func(c *gc.Config) { c.Lock = nil },
		"no remover":      func(c *gc.Config) { c.Remover = nil },
		"no clock":        func(c *gc.Config) { c.Clock = nil },
		"no grace":        func(c *gc.Config) { c.Retention.Grace = gc.MinGrace - 1 },
		"zero retention":  func(c *gc.Config) { c.Retention = gc.Retention{} },
		"negative, alone": func(c *gc.Config) { c.Retention.Grace, c.Alone = -1, true },
	} {
		config := gc.Config{
			Store: w.db, Catalog: w.db, Intents: w.db, Blobs: w.blobs, Remover: w.store, Garbage: w.db, Clock: w.db,
			Owner: registrytest.Owned{}, Lock: registrytest.Owned{}, Retention: gc.DefaultRetention(),
		}
		edit(&config)
		if _, err := gc.New(config); registry.CodeOf(err) != registry.CodeInvalid || err == nil {
			t.Errorf("%s: %v, want CodeInvalid", name, err)
		}
	}
}

// Two replicas on one database take turns, and one that stops hands over.
func TestCollectionsTakeTurns(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.db.Now = registrytest.NewClock().Now // by which no lease ends
	told := make(chan string)
	replica := func(name string) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			gc.Schedule{
				Collector: w.collector(t, 0), Leases: w.db, Holder: name, Interval: 5 * time.Millisecond,
				Tell: func(ctx context.Context, _ gc.Collected, _ time.Duration, err error) {
					if err != nil {
						t.Error(err)
					}
					select {
					case told <- name:
					case <-ctx.Done():
					}
				},
			}.Run(ctx)
		}()
		return func() { cancel(); <-done }
	}
	stopFirst := replica("first")
	if got := <-told; got != "first" {
		t.Fatalf("%s collected", got)
	}
	stopSecond := replica("second")
	defer stopSecond()
	for range 3 {
		if got := <-told; got != "first" {
			t.Fatalf("%s collected while the first had the lease", got)
		}
	}
	stopFirst()
	if got := <-told; got != "second" {
		t.Fatalf("%s collected after it had stopped", got)
	}
}

// Bytes that nothing holds are unmarked before anybody relies on them.
func TestSafeStoreUnmarks(t *testing.T) {
	t.Parallel()
	w := setup(t)
	blobs := gc.SafeStore{Garbage: w.db, Remover: w.store}.Blobs(w.blobs)
	d := registry.Digest("sha256:9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0") // of "aaa"
	put := func() {
		t.Helper()
		if err := blobs.Put(t.Context(), d, 3, strings.NewReader("aaa")); err != nil {
			t.Fatal(err)
		}
	}
	put()
	collect(t, w.collector(t, 0))
	put() // it is there, so that nothing is written: whoever does this may rely on it
	if did := collect(t, w.collector(t, 2*days)); did.Blobs != 0 {
		t.Errorf("%+v, want it to be marked anew", did)
	}
	if did := collect(t, w.collector(t, 4*days)); did.Blobs != 1 || did.Bytes != 3 {
		t.Errorf("%+v, want it to go", did)
	}
	put()
	blob, _, err := blobs.Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(blob); string(got) != "aaa" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
