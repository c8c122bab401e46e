package gc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// world is a catalog and its content. Every call of a port goes through fails, which returns an
// error for the calls that are to fail.
type world struct {
	*mem.DB
	blobs          *mem.Blobs
	later          time.Duration // that the clock is ahead
	fail           string        // the method that fails; empty: none
	epoch          func() int64
	swept, permits int
	repeatable     bool // the storage may carry out a deletion twice
	// What storage gives in place of the content, by digest.
	changed map[registry.Digest][]byte
}

var errPort = errors.New("the port failed")

func newWorld() *world {
	w := &world{DB: mem.New(), blobs: mem.NewBlobs(), epoch: func() int64 { return 1 }, changed: make(map[registry.Digest][]byte)}
	w.Now = func() time.Time { return noon().Add(w.later) }
	return w
}

func (w *world) fails(method string) error {
	if w.fail == method {
		return fmt.Errorf("%s: %w", method, errPort)
	}
	return nil
}

// put stores content, which a repository holds if one is named.
func (w *world) put(t *testing.T, repository, content string) registry.Digest {
	t.Helper()
	d := digest.FromString(content)
	err := w.blobs.Put(t.Context(), d, int64(len(content)), strings.NewReader(content))
	if err == nil && repository != "" {
		err = w.AddBlob(t.Context(), repository, d, int64(len(content)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// manifest stores a manifest that mentions digests.
func (w *world) manifest(t *testing.T, repository, tag string, mentions ...registry.Digest) registry.Digest {
	t.Helper()
	raw := fmt.Sprintf(`{"mentions":["%s"],"of":%q}`, strings.Join(strs(mentions), `","`), repository+tag)
	d := w.put(t, "", raw)
	var tags []string
	if tag != "" {
		tags = []string{tag}
	}
	if err := w.PutManifest(t.Context(), repository,
		storage.Manifest{Digest: d, MediaType: "application/vnd.oci.image.manifest.v1+json", Size: int64(len(raw))}, tags...); err != nil {
		t.Fatal(err)
	}
	return d
}

func strs(digests []registry.Digest) []string {
	var all []string
	for _, d := range digests {
		all = append(all, string(d))
	}
	return all
}

func (w *world) has(t *testing.T, d registry.Digest) bool {
	t.Helper()
	blob, _, err := w.blobs.Open(t.Context(), d)
	if err != nil {
		return false
	}
	return blob.Close() == nil
}

// size is that of stored content.
func (w *world) size(d registry.Digest) int {
	_, size, err := w.blobs.Open(context.Background(), d)
	if err != nil {
		panic(err)
	}
	return int(size)
}

// config is a collector of the world with a grace period of an hour.
func (w *world) config(edits ...func(c *gc.Config)) gc.Config {
	p := ports{w}
	c := gc.Config{
		Environments: policy.Environments{List: []policy.Environment{{Name: "staging"}, {Name: "prod", From: "staging"}}},
		Current:      p.current, Store: p, Catalog: p, Intents: p, Blobs: blobPort{w.blobs, w}, Remover: blobPort{w.blobs, w}, Garbage: p, Clock: p, Owner: p, Lock: p,
		Retention: gc.Retention{Grace: time.Hour}, Sweep: p.sweep,
	}
	for _, edit := range edits {
		edit(&c)
	}
	return c
}

func alone(c *gc.Config) { c.Alone = true }

func (w *world) collector(t *testing.T, edits ...func(c *gc.Config)) *gc.Collector {
	t.Helper()
	c, err := gc.New(w.config(edits...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// collect collects, after so long.
func (w *world) collect(t *testing.T, after time.Duration, edits ...func(c *gc.Config)) gc.Collected {
	t.Helper()
	w.later += after
	did, err := w.collector(t, edits...).Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return did
}

// ports is the world with calls that can fail.
type ports struct{ *world }

func (p ports) current(context.Context) (policy.Environments, error) {
	return policy.Environments{List: []policy.Environment{{Name: "staging"}, {Name: "prod", From: "staging"}}}, p.fails("Current")
}

func (p ports) sweep(context.Context) (int, error) { p.swept++; return 3, p.fails("Sweep") }

func (p ports) CatalogTime(context.Context) (time.Time, error) {
	return p.Now(), p.fails("CatalogTime")
}

func (p ports) OwnsContent(context.Context) (int64, error) { return p.epoch(), p.fails("OwnsContent") }

func (p ports) LockCollection(context.Context) (storage.CollectionSession, error) {
	return p, p.fails("LockCollection")
}

func (p ports) Held(context.Context) error { return p.fails("Held") }

func (p ports) Release() {}

func (p ports) Heads(ctx context.Context, environment, model string) ([]history.Head, error) {
	heads, err := p.DB.Heads(ctx, environment, model)
	return heads, errors.Join(err, p.fails("Heads"))
}

func (p ports) Pending(ctx context.Context) ([]history.Intent, error) {
	intents, err := p.DB.Pending(ctx)
	return intents, errors.Join(err, p.fails("Pending"))
}

func (p ports) Abandon(ctx context.Context, i history.Intent) error {
	return errors.Join(p.fails("Abandon"), p.DB.Abandon(ctx, i))
}

func (p ports) History(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error] {
	return failing(p.DB.History(ctx, q), p.fails("History"))
}

func (p ports) Repositories(ctx context.Context) ([]string, error) {
	all, err := p.DB.Repositories(ctx)
	return all, errors.Join(err, p.fails("Repositories"))
}

func (p ports) Records(ctx context.Context, repository string) ([]storage.GCRecord, error) {
	records, err := p.DB.Records(ctx, repository)
	return records, errors.Join(err, p.fails("Records of "+repository))
}

func (p ports) UpdateRecords(ctx context.Context, repository string, decide func([]storage.GCRecord) (storage.GCChanges, error)) error {
	return errors.Join(p.fails("UpdateRecords"), p.DB.UpdateRecords(ctx, repository, decide))
}

func (p ports) WithoutRepository(ctx context.Context, digests []registry.Digest) ([]registry.Digest, error) {
	if err := p.fails("WithoutRepository"); err != nil {
		return nil, err
	}
	return p.DB.WithoutRepository(ctx, digests)
}

func (p ports) Mark(ctx context.Context, at time.Time, digests []registry.Digest) error {
	return errors.Join(p.fails("Mark"), p.DB.Mark(ctx, at, digests))
}

func (p ports) MarkedBefore(ctx context.Context, before time.Time) iter.Seq2[registry.Digest, error] {
	return failing(p.DB.MarkedBefore(ctx, before), p.fails("MarkedBefore"))
}

func (p ports) BeginRemoval(ctx context.Context, r storage.RemovalRequest) ([]registry.Digest, error) {
	if err := p.fails("BeginRemoval"); err != nil {
		return nil, err
	}
	return p.DB.BeginRemoval(ctx, r)
}

func (p ports) ConfirmRemoval(ctx context.Context, id string, least time.Duration) (bool, error) {
	lasts, err := p.DB.ConfirmRemoval(ctx, id, least)
	return lasts && p.fail != "a removal that lasts", errors.Join(err, p.fails("ConfirmRemoval"))
}

func (p ports) EndRemoval(ctx context.Context, id string, removed, kept []registry.Digest) error {
	return errors.Join(p.fails("EndRemoval"), p.DB.EndRemoval(ctx, id, removed, kept))
}

func (p ports) RecipeDigests(ctx context.Context, after registry.Digest, limit int) ([]registry.Digest, error) {
	page, err := p.DB.RecipeDigests(ctx, after, limit)
	return page, errors.Join(err, p.fails("Recipes"))
}

func (p ports) TakeOver(ctx context.Context, d registry.Digest, id string) error {
	return errors.Join(p.fails("TakeOver"), p.DB.TakeOver(ctx, d, id))
}

// failing ends a sequence with an error, unless it is nil.
func failing[T any](all iter.Seq2[T, error], failure error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range all {
			if !yield(v, err) {
				return
			}
		}
		if failure != nil {
			var zero T
			yield(zero, failure)
		}
	}
}

// blobPort is the storage of the world.
type blobPort struct {
	*mem.Blobs
	w *world
}

func (b blobPort) Open(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
	if err := errors.Join(b.w.fails("Open"), b.w.fails("Open "+string(d))); err != nil {
		return nil, 0, err
	}
	if raw, ok := b.w.changed[d]; ok {
		return content{bytes.NewReader(raw)}, int64(len(raw)), nil
	}
	return b.Blobs.Open(ctx, d)
}

// content is stored bytes.
type content struct{ *bytes.Reader }

func (content) Close() error { return nil }

func (b blobPort) Digests(ctx context.Context) iter.Seq2[registry.Digest, error] {
	return failing(b.Blobs.Digests(ctx), b.w.fails("Digests"))
}

func (b blobPort) Await(context.Context) error {
	if b.w.fail == "another collector hangs" {
		return registry.Errorf(registry.CodeUnavailable, "a permit is still in use")
	}
	return b.w.fails("Await")
}

func (b blobPort) Repeatable() bool { return b.w.repeatable }

func (b blobPort) Permit(context.Context) (storage.Permit, error) {
	b.w.permits++
	return b, b.w.fails("Permit")
}

func (b blobPort) Delete(ctx context.Context, d registry.Digest) error {
	if err := b.w.fails("Delete"); err != nil {
		return err
	}
	return b.Blobs.Delete(ctx, d)
}

func (b blobPort) Close() error { return b.w.fails("Close") }

// A collector has all its parts, and a grace period of at least a minute while others write.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(c *gc.Config)
		ok   bool
	}{
		"all parts":               {func(*gc.Config) {}, true},
		"no store":                {func(c *gc.Config) { c.Store = nil }, false},
		"no catalog":              {func(c *gc.Config) { c.Catalog = nil }, false},
		"no intents":              {func(c *gc.Config) { c.Intents = nil }, false},
		"no blobs":                {func(c *gc.Config) { c.Blobs = nil }, false},
		"no remover":              {func(c *gc.Config) { c.Remover = nil }, false},
		"no garbage":              {func(c *gc.Config) { c.Garbage = nil }, false},
		"no clock":                {func(c *gc.Config) { c.Clock = nil }, false},
		"no owner":                {func(c *gc.Config) { c.Owner = nil }, false},
		"no lock":                 {func(c *gc.Config) { c.Lock = nil }, false},
		"no environments of now":  {func(c *gc.Config) { c.Current = nil }, true},
		"no sweep":                {func(c *gc.Config) { c.Sweep = nil }, true},
		"the shortest grace":      {func(c *gc.Config) { c.Retention.Grace = gc.MinGrace }, true},
		"a shorter grace":         {func(c *gc.Config) { c.Retention.Grace = gc.MinGrace - 1 }, false},
		"a shorter grace, alone":  {func(c *gc.Config) { c.Retention.Grace, c.Alone = gc.MinGrace-1, true }, true},
		"no grace, alone":         {func(c *gc.Config) { c.Retention.Grace, c.Alone = 0, true }, true},
		"less than none, alone":   {func(c *gc.Config) { c.Retention.Grace, c.Alone = -1, true }, false},
		"fewer than no heads":     {func(c *gc.Config) { c.Retention.Heads = -1 }, false},
		"less than no time":       {func(c *gc.Config) { c.Retention.Period = -1 }, false},
		"no heads and no time":    {func(c *gc.Config) { c.Retention.Heads, c.Retention.Period = 0, 0 }, true},
		"some heads and some day": {func(c *gc.Config) { c.Retention = gc.DefaultRetention() }, true},
	} {
		_, err := gc.New(newWorld().config(c.edit))
		if c.ok && err != nil {
			t.Errorf("%s: error %v, want none", name, err)
		}
		if !c.ok && (err == nil || !registry.HasCode(err, registry.CodeInvalid)) {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
}

// Content that nothing needs is marked, and deleted once the grace period has passed twice: for the record and for the bytes.
func TestCollectInSteps(t *testing.T) {
	t.Parallel()
	w := newWorld()
	kept := w.put(t, "staging/m", "kept")
	tagged := w.manifest(t, "staging/m", "1.0.0", kept)
	stray := w.put(t, "staging/m", "stray")
	lost := w.manifest(t, "staging/m", "", stray)
	for step, c := range []struct {
		after time.Duration
		want  gc.Collected
	}{
		{59 * time.Minute, gc.Collected{Leftovers: 3}}, // too young
		{2 * time.Minute, gc.Collected{Marked: 2, Leftovers: 3}},
		{59 * time.Minute, gc.Collected{Leftovers: 3}},
		{2 * time.Minute, gc.Collected{Manifests: 1, Members: 1, Leftovers: 3}},
		{59 * time.Minute, gc.Collected{Leftovers: 3}},
		{2 * time.Minute, gc.Collected{Blobs: 2, Leftovers: 3}},
		{100 * time.Hour, gc.Collected{Leftovers: 3}},
	} {
		w.later += c.after
		plan, err := w.collector(t).Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		did := w.collect(t, 0)
		c.want.Bytes = did.Bytes
		if fmt.Sprint(did) != fmt.Sprint(c.want) || (did.Bytes > 0) != (did.Blobs > 0) {
			t.Errorf("step %d: collected %+v, want %+v", step, did, c.want)
		}
		if plan.Blobs != did.Blobs || plan.Bytes != did.Bytes {
			t.Errorf("step %d: planned %d blobs of %d bytes, deleted %d of %d", step, plan.Blobs, plan.Bytes, did.Blobs, did.Bytes)
		}
	}
	for d, want := range map[registry.Digest]bool{kept: true, tagged: true, stray: false, lost: false} {
		if got := w.has(t, d); got != want {
			t.Errorf("%s is stored: %v, want %v", d, got, want)
		}
	}
}

// A use unmarks what was marked.
func TestCollectUnmarks(t *testing.T) {
	t.Parallel()
	w := newWorld()
	stray := w.put(t, "staging/m", "stray")
	w.collect(t, 2*time.Hour)
	manifest := w.manifest(t, "staging/m", "1.0.0", stray)
	if did := w.collect(t, 2*time.Hour); did.Unmarked != 1 || did.Members != 0 {
		t.Errorf("collected %+v, want one record unmarked", did)
	}
	if !w.has(t, stray) || !w.has(t, manifest) {
		t.Error("content that a tagged manifest mentions is gone")
	}
}

// Who is alone waits for nothing, and deletes more than fits in one removal.
func TestCollectAlone(t *testing.T) {
	t.Parallel()
	w := newWorld()
	const strays = 1001 // ten removals, and three lookups
	for i := range strays {
		w.put(t, "", fmt.Sprintf("%04d", i))
	}
	kept := w.put(t, "staging/m", "kept")
	w.manifest(t, "staging/m", "1.0.0", kept)
	plan, err := w.collector(t, alone).Plan(t.Context())
	if err != nil || plan.Blobs != strays || plan.Bytes != 4*strays {
		t.Errorf("planned %d blobs of %d bytes, error %v; want %d of %d", plan.Blobs, plan.Bytes, err, strays, 4*strays)
	}
	w.fail = "another collector hangs" // which does not keep this one from its own removals
	did := w.collect(t, 2*time.Hour, alone)
	if w.permits > strays/100+1 {
		t.Errorf("%d permits, want one for each removal of a hundred", w.permits)
	}
	if did.Blobs != strays || did.Bytes != 4*strays || !w.has(t, kept) {
		t.Errorf("deleted %d blobs of %d bytes, what is needed is there: %v; want %d of %d, and true",
			did.Blobs, did.Bytes, w.has(t, kept), strays, 4*strays)
	}
}

// Sources stay as long as a release of their model mentions them.
func TestCollectSources(t *testing.T) {
	t.Parallel()
	w := newWorld()
	ofA, ofB := w.manifest(t, "staging/a/sources", ""), w.manifest(t, "staging/b/sources", "")
	w.manifest(t, "prod/a", "1.0.0", ofA)
	w.manifest(t, "prod/c", "1.0.0", ofB) // another model does not keep them
	did := w.collect(t, 2*time.Hour, alone)
	if did.Manifests != 1 || !w.has(t, ofA) || w.has(t, ofB) {
		t.Errorf("deleted %d manifests, sources of a are there: %v, of b: %v; want 1, true and false", did.Manifests, w.has(t, ofA), w.has(t, ofB))
	}
}

// A repository that cannot be read is skipped, and so are the sources of its model. Others are collected.
func TestCollectSkipsDamage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(w *world, d registry.Digest)
		says   string
	}{
		"missing": {func(w *world, d registry.Digest) { _ = w.blobs.Delete(context.Background(), d) }, "its bytes are missing"},
		"changed": {func(w *world, d registry.Digest) { w.changed[d] = bytes.Repeat([]byte(" "), w.size(d)) }, "its bytes were changed"},
		"shorter": {func(w *world, d registry.Digest) { w.changed[d] = make([]byte, w.size(d)-1) }, "bytes, want"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			source, stray := w.manifest(t, "staging/a/sources", ""), w.put(t, "staging/b", "stray")
			bad := w.manifest(t, "staging/a", "1.0.0", source)
			member := w.put(t, "staging/a", "member")
			c.damage(w, bad)
			plan, err := w.collector(t, alone).Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			did := w.collect(t, 2*time.Hour, alone)
			if len(did.SkippedRepositories) != 2 || did.SkippedRepositories[0].Repository != "staging/a" ||
				did.SkippedRepositories[1].Repository != "staging/a/sources" ||
				!strings.Contains(did.SkippedRepositories[0].Reason, c.says) {
				t.Errorf("skipped %+v, want staging/a because %q, and its sources", did.SkippedRepositories, c.says)
			}
			if !slices.Equal(plan.SkippedRepositories, did.SkippedRepositories) {
				t.Errorf("planned to skip %+v, skipped %+v", plan.SkippedRepositories, did.SkippedRepositories)
			}
			if !w.has(t, source) || !w.has(t, member) || w.has(t, stray) {
				t.Errorf("source %v, member %v and stray %v of another model are there; want true, true and false",
					w.has(t, source), w.has(t, member), w.has(t, stray))
			}
		})
	}
}

// A manifest that is no JSON object says nothing about what it needs.
func TestCollectSkipsUnreadableManifests(t *testing.T) {
	t.Parallel()
	w := newWorld()
	d := w.put(t, "", "[]")
	if err := w.PutManifest(t.Context(), "staging/a", storage.Manifest{Digest: d, MediaType: "x", Size: 2}, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	member := w.put(t, "staging/a", "member")
	if did := w.collect(t, 2*time.Hour, alone); len(did.SkippedRepositories) != 1 || !w.has(t, member) {
		t.Errorf("skipped %+v, the member is there: %v; want staging/a, and true", did.SkippedRepositories, w.has(t, member))
	}
}

// Promotions that were given up are forgotten, and those under way are not.
func TestCollectIntents(t *testing.T) {
	t.Parallel()
	w := newWorld()
	release := w.manifest(t, "staging/m", "1.0.0")
	for _, i := range []history.Intent{{Environment: "prod", Model: "m", From: "staging", Release: release},
		{Environment: "lab", Model: "m", From: "staging", Release: release}} {
		if err := w.Begin(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	moved := history.Intent{Environment: "prod", Model: "n", From: "staging", Release: release}
	w.RestoreHead(history.Head{Environment: "prod", Model: "n", Release: release})
	if err := w.Begin(t.Context(), moved); err != nil { // its head has moved, so it stands
		t.Fatal(err)
	}
	for step, c := range []struct {
		after time.Duration
		want  int
	}{{time.Hour, 1}, {time.Hour, 0}, {23 * time.Hour, 1}, {time.Hour, 0}} {
		if did := w.collect(t, c.after); did.Intents != c.want {
			t.Errorf("step %d: %d intents were forgotten, want %d", step, did.Intents, c.want)
		}
	}
}

// Whatever port fails, the collection ends with its error.
func TestCollectFails(t *testing.T) {
	t.Parallel()
	for name, planned := range map[string]bool{
		"CatalogTime": true, "Current": true, "Heads": true, "Pending": true, "History": true, "Repositories": true, "Records of staging/m": true,
		"Records of staging/m/sources": true, "Open": true, "Digests": true, "MarkedBefore": true, "Recipes": true,
		"LockCollection": false, "OwnsContent": false, "Held": false, "Abandon": false, "UpdateRecords": false, "WithoutRepository": false, "Mark": false,
		"Open " + string(digest.FromString("stray")): true, "Await": false, "BeginRemoval": false,
		"ConfirmRemoval": false, "EndRemoval": false, "Permit": false, "Delete": false, "Close": false, "Sweep": false,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.manifest(t, "staging/m", "1.0.0", w.put(t, "staging/m", "kept"))
			w.put(t, "staging/m", "stray")
			w.manifest(t, "staging/m/sources", "")
			if err := w.Begin(t.Context(), history.Intent{Environment: "lab", Model: "m", From: "staging", Release: digest.FromString("x")}); err != nil {
				t.Fatal(err)
			}
			w.later, w.fail = 2*time.Hour, name
			_, err := w.collector(t, alone).Plan(t.Context())
			if planned && !errors.Is(err, errPort) {
				t.Errorf("plan: error %v, want %v", err, errPort)
			}
			if !planned && err != nil {
				t.Errorf("plan: error %v, want none", err)
			}
			if did, err := w.collector(t, alone).Collect(t.Context()); !errors.Is(err, errPort) {
				t.Errorf("collected %+v, error %v; want %v", did, err, errPort)
			}
			w.fail = ""
			if _, err := w.collector(t, alone).Collect(t.Context()); err != nil {
				t.Errorf("the next collection: %v", err)
			}
		})
	}
}

// Nothing is deleted once the content has another owner, or once a removal does not last.
func TestCollectStopsDeleting(t *testing.T) {
	t.Parallel()
	w := newWorld()
	stray := w.put(t, "", "stray")
	asked := int64(0)
	w.epoch = func() int64 { asked++; return asked }
	_, err := w.collector(t, alone).Collect(t.Context())
	if !registry.HasCode(err, registry.CodeUnavailable) || !strings.Contains(err.Error(), "another owner") || !w.has(t, stray) {
		t.Errorf("another owner: error %v, the content is there: %v; want CodeUnavailable and true", err, w.has(t, stray))
	}
	w.epoch, w.fail = func() int64 { return 1 }, "a removal that lasts"
	if did := w.collect(t, 0, alone); did.Blobs != 0 || !w.has(t, stray) {
		t.Errorf("a removal that does not last: deleted %d blobs, want none", did.Blobs)
	}
	w.fail = ""
	if did := w.collect(t, 0, alone); did.Blobs != 1 || w.has(t, stray) {
		t.Errorf("afterwards: deleted %d blobs, want 1", did.Blobs)
	}
}

// Without a sweep there are no leftovers, and an error before it keeps it from running.
func TestCollectSweeps(t *testing.T) {
	t.Parallel()
	w := newWorld()
	if did := w.collect(t, 0, func(c *gc.Config) { c.Sweep = nil }); did.Leftovers != 0 {
		t.Errorf("%d leftovers without a sweep, want none", did.Leftovers)
	}
	w.fail = "Digests"
	if _, err := w.collector(t).Collect(t.Context()); err == nil || w.swept != 0 {
		t.Errorf("error %v, swept %d times; want an error, and no sweep", err, w.swept)
	}
}

// Storage that may carry out a deletion twice keeps the removal of deleted bytes open until it
// expires. The next collection then clears the mark without another deletion.
func TestRepeatableDeletions(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.repeatable = true
	d := w.put(t, "", "stray")
	if did := w.collect(t, 0, alone); did.Blobs != 1 || did.Bytes != 5 {
		t.Errorf("collected %+v, want one blob of 5 bytes", did)
	}
	removal, err := w.Unmark(t.Context(), d)
	if err != nil || removal.ID == "" || removal.Left != storage.RemovalTime {
		t.Errorf("after the deletion the removal is %+v (%v), want one that lasts %v", removal, err, storage.RemovalTime)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := w.safe().Blobs(w.blobs).Put(ctx, d, 5, strings.NewReader("stray")); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("a write during the removal: error %v, want %s", err, registry.CodeUnavailable)
	}
	permits := w.permits
	if did := w.collect(t, storage.RemovalTime+time.Second, alone); did.Blobs != 0 || w.permits != permits {
		t.Errorf("the next collection deleted %d blobs with %d permits, want none", did.Blobs, w.permits-permits)
	}
	if _, marked := w.MarkedNow(d); marked {
		t.Error("the mark is still there after the removal expired")
	}
	if err := w.safe().Blobs(w.blobs).Put(t.Context(), d, 5, strings.NewReader("stray")); err != nil {
		t.Error(err)
	}
}

// Bytes that were stored again after a removal expired can be collected again.
func TestRepeatableStoredAgain(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.repeatable = true
	d := w.put(t, "", "stray")
	w.collect(t, 0, alone)
	w.later += storage.RemovalTime
	if err := w.safe().Blobs(w.blobs).Put(t.Context(), d, 5, strings.NewReader("stray")); err != nil {
		t.Fatal(err)
	}
	if did := w.collect(t, time.Second, alone); did.Blobs != 1 || w.has(t, d) {
		t.Errorf("collected %+v, want the blob again", did)
	}
}
