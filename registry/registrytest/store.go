package registrytest

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Store is what keeps names, heads, history and intents together.
type Store interface {
	storage.RepositoryRecords
	storage.Catalog
	storage.Latest
	history.HistoryIndex
	storage.Listing
	storage.Intents
	NodeTypes() storage.NodeTypes
}

// TestStore tests the joint contract of the ports of a [Store]: a change is one
// transaction over tags, head, intent and history, or nothing.
func TestStore(t *testing.T, open func(t *testing.T) Store) {
	TestRefs(t, func(t *testing.T) storage.RepositoryRecords { return open(t) })
	TestCatalog(t, func(t *testing.T) storage.Catalog { return open(t) })
	t.Run("node types of a basis", func(t *testing.T) {
		t.Parallel()
		testNodeTypesOfBasis(t, open(t))
	})
	t.Run("last event", func(t *testing.T) {
		t.Parallel()
		testLastEvent(t, open(t))
	})
	t.Run("recorded", func(t *testing.T) {
		t.Parallel()
		testRecorded(t, open(t))
	})
	t.Run("many recorded", func(t *testing.T) {
		t.Parallel()
		testRecordedMany(t, open(t))
	})
	t.Run("model page", func(t *testing.T) {
		t.Parallel()
		testModelPage(t, open(t))
	})
	t.Run("tag page", func(t *testing.T) {
		t.Parallel()
		testTagPage(t, open(t))
	})
	t.Run("change is seen everywhere", func(t *testing.T) {
		t.Parallel()
		testChange(t, open(t))
	})
	t.Run("change needs manifests", func(t *testing.T) {
		t.Parallel()
		testNeeds(t, open(t))
	})
	t.Run("change adds manifests", func(t *testing.T) {
		t.Parallel()
		testAdds(t, open(t))
	})
	t.Run("conflict is seen nowhere", func(t *testing.T) {
		t.Parallel()
		testConflict(t, open(t))
	})
}

// promotion is a change of every kind at once.
func promotion(from, to string) storage.Change {
	c := move("a", from, to)
	c.EndIntent = true
	c.Tags = []storage.TagMove{
		{Repository: "prod/a", Tag: artifact.HeadTag, Digest: d(to)},
		{Repository: "prod/a", Tag: "1.0.0", Digest: d(to), Immutable: true},
	}
	return c
}

func wantTags(t *testing.T, store Store, release string) {
	t.Helper()
	for _, tag := range []string{artifact.HeadTag, "1.0.0"} {
		got, err := store.Tag(t.Context(), "prod/a", tag)
		must(t, err)
		wantEqual(t, got, d(release))
	}
}

func testChange(t *testing.T, store Store) {
	must(t, store.Begin(t.Context(), intent("a", "first")))
	must(t, store.Begin(t.Context(), intent("b", "first")))
	apply(t, store, storage.Change{Event: event("a", "none")})
	wantPending(t, store, intent("a", "first"), intent("b", "first"))
	apply(t, store, promotion("", "first"))
	wantTags(t, store, "first")
	wantPending(t, store, intent("b", "first"))
	head, err := store.Head(t.Context(), "prod", "a")
	must(t, err)
	wantEqual(t, head.Release, d("first"))
	wantChain(t, store, 2)
}

// What a change names must not have been collected.
func testNeeds(t *testing.T, store Store) {
	must(t, store.PutManifest(t.Context(), "prod/a", record("first", "")))
	c := promotion("", "first")
	c.Needs = []storage.ManifestPlace{{Repository: "prod/a", Digest: record("first", "").Digest},
		{Repository: "staging/a", Digest: record("first", "").Digest}}
	_, err := store.Apply(t.Context(), c)
	wantCode(t, err, registry.CodeConflict)
	wantEqual(t, history.BasisOutdated(err), false)
	_, err = store.Head(t.Context(), "prod", "a")
	wantCode(t, err, registry.CodeNotFound)
	wantChain(t, store, 0)
	must(t, store.PutManifest(t.Context(), "staging/a", record("first", "")))
	apply(t, store, c)
	wantChain(t, store, 1)
}

// A change records manifests and its event, or neither. A recorded manifest keeps its pusher.
func testAdds(t *testing.T, store Store) {
	pushed := record("pushed", "first")
	pushed.Pusher = "somebody"
	must(t, store.PutManifest(t.Context(), "prod/a", pushed))
	added := record("added", "first")
	c := promotion("other", "first") // the head is another
	c.Adds = []storage.RepositoryManifest{{Repository: "prod/a", Manifest: added}, {Repository: "prod/a", Manifest: record("pushed", "first")}}
	_, err := store.Apply(t.Context(), c)
	wantCode(t, err, registry.CodeConflict)
	_, err = store.Manifest(t.Context(), "prod/a", added.Digest)
	wantCode(t, err, registry.CodeNotFound)
	wantChain(t, store, 0)
	adds := c.Adds
	c = promotion("", "first")
	c.Adds = adds
	apply(t, store, c)
	for _, want := range []storage.Manifest{added, pushed} {
		have, err := store.Manifest(t.Context(), "prod/a", want.Digest)
		must(t, err)
		wantEqual(t, have, want)
	}
	page, err := store.Referrers(t.Context(), "prod/a", added.Derived.Subject, "", "")
	must(t, err)
	wantEqual(t, len(page), 2)
}

func testConflict(t *testing.T, store Store) {
	apply(t, store, promotion("", "first"))
	must(t, store.Begin(t.Context(), intent("a", "second")))
	for _, c := range []storage.Change{
		promotion("other", "first"),  // the head is another
		promotion("first", "second"), // the tag must not move
	} {
		_, err := store.Apply(t.Context(), c)
		wantCode(t, err, registry.CodeConflict)
	}
	wantTags(t, store, "first")
	wantPending(t, store, intent("a", "second"))
	head, err := store.Head(t.Context(), "prod", "a")
	must(t, err)
	wantEqual(t, head.Release, d("first"))
	wantChain(t, store, 1)
}
