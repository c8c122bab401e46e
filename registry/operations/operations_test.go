package operations_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/operations"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// world is a gatherer over a catalog in memory.
type world struct {
	*mem.DB
	operations.Config
	now time.Time
}

func (w *world) CatalogTime(context.Context) (time.Time, error) { return w.now, nil }

func setup() *world {
	w := &world{DB: mem.New(), now: time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)}
	w.Config = operations.Config{
		Version: "1.2.3", Storage: "directory", Store: w.DB, Intents: w.DB, Uploads: w.StaleUploads, Damages: mem.NewTable[storage.Damage](),
		Scrubs: mem.NewTable[storage.ScrubState](), Replicas: mem.NewTable[storage.Replica](), Webhooks: mem.NewTable[storage.Webhook](),
		Deliveries: mem.NewTable[storage.Delivery](), History: w.DB.History, Clock: w,
		Trust: func(context.Context) (policy.Environments, map[string]string, error) {
			es := registrytest.Chain()
			return es, map[string]string{es.Trust[0].String(): "builder-id"}, nil
		},
	}
	return w
}

// event adds an event that a key signed.
func (w *world) event(t *testing.T, signer string) {
	t.Helper()
	_, err := w.Apply(t.Context(), storage.Change{Event: history.Event{
		Time: w.now, Kind: history.EventAttach, Environment: "prod", Model: "vision/digits", Signer: signer}})
	if err != nil {
		t.Fatal(err)
	}
}

func gather(t *testing.T, g *operations.Gatherer) api.Operations {
	t.Helper()
	if err := g.Count(t.Context()); err != nil {
		t.Fatal(err)
	}
	o, err := g.Gather(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func put[T any](t *testing.T, table registry.Table[T], name string, document T) {
	t.Helper()
	if err := table.Put(t.Context(), name, document); err != nil {
		t.Fatal(err)
	}
}

// What repositories share is counted once, and each repository with all that it holds. A count is used for a while.
func TestContentIsCountedOnce(t *testing.T) {
	t.Parallel()
	w := setup()
	add := func(repository string, blob byte, size int64) {
		d := registry.Digest(fmt.Sprintf("sha256:%064x", blob))
		if err := w.AddBlob(t.Context(), repository, d, size); err != nil {
			t.Fatal(err)
		}
	}
	add("staging/a", 1, 100)
	add("staging/a", 2, 50)
	add("prod/a", 1, 100)
	g := operations.New(w.Config)
	if o, err := g.Gather(t.Context()); err != nil || o.Content != nil {
		t.Errorf("before the first count: got %+v, error %v, want no count", o.Content, err)
	}
	c := gather(t, g).Content
	if c.Bytes != 150 || c.Blobs != 2 || c.Manifests != 0 || c.Repositories != 2 {
		t.Errorf("got %+v, want 150 bytes in 2 blobs of 2 repositories", c)
	}
	if len(c.Largest) != 2 || c.Largest[0] != (storage.RepositoryUse{Repository: "staging/a", Bytes: 150}) {
		t.Errorf("the largest are %v, want staging/a with 150 bytes first", c.Largest)
	}
	add("staging/b", 3, 7)
	if w.now = w.now.Add(time.Minute); gather(t, g).Content.Bytes != 150 {
		t.Error("after a minute it was counted again, want the count from before")
	}
	if w.now = w.now.Add(time.Hour); gather(t, g).Content.Bytes != 157 {
		t.Error("after an hour it was not counted again")
	}
}

// What a key signed is counted over all models, and later events are added.
func TestWhatKeysSigned(t *testing.T) {
	t.Parallel()
	w := setup()
	g := operations.New(w.Config)
	w.event(t, "builder-id")
	w.event(t, "another")
	gather(t, g)
	w.now = w.now.Add(time.Hour)
	w.event(t, "builder-id")
	keys := gather(t, g).Keys
	if got := keys[0]; got.Statements != 2 || !got.Last.Equal(w.now) || got.Signer != "builder-id" {
		t.Errorf("the builder has %+v, want 2 statements, the last one at %v", got, w.now)
	}
	if got := keys[0]; len(got.MaySign) != 2 || got.MaySign[0] != evidence.PredicateSign || got.MaySign[1] != evidence.PredicateProvenance {
		t.Errorf("a builder may sign %v, want signatures and provenance", got.MaySign)
	}
	if got := keys[1]; got.Signer != "" || got.Statements != 0 {
		t.Errorf("a key without a file has %+v, want nothing counted", got)
	}
}

func TestWhatWaits(t *testing.T) {
	t.Parallel()
	w := setup()
	w.event(t, "")
	w.event(t, "")
	put(t, w.Webhooks, "one", storage.Webhook{URL: "https://example.com", After: 1, Secret: []byte("secret")})
	put(t, w.Webhooks, "two", storage.Webhook{URL: "https://example.com/two"})
	put(t, w.Deliveries, "two", storage.Delivery{Delivered: 2, Attempts: 3, LastError: "refused", Suspended: w.now})
	put(t, w.Damages, "sha256:1", storage.Damage{Kind: storage.DamageMissing})
	put(t, w.Replicas, "a", storage.Replica{Collection: &storage.CollectionRun{Ended: w.now, Blobs: 7}})
	put(t, w.Replicas, "b", storage.Replica{Collection: &storage.CollectionRun{Ended: w.now.Add(-time.Hour), Blobs: 1}})
	if err := w.Begin(t.Context(), history.Intent{Environment: "prod", Model: "vision/digits", From: "staging", Release: "sha256:1"}); err != nil {
		t.Fatal(err)
	}
	o := gather(t, operations.New(w.Config))
	if len(o.Webhooks) != 2 || o.Webhooks[0].Waiting != 1 || o.Webhooks[0].Suspended || o.Webhooks[1].Waiting != 0 || !o.Webhooks[1].Suspended || o.Webhooks[1].LastError != "refused" {
		t.Errorf("webhooks are %+v, want one event behind, and one that stopped", o.Webhooks)
	}
	if o.DamagedCount != 1 || len(o.Damaged) != 1 || len(o.Moves) != 1 || o.Moves[0].From != "staging" {
		t.Errorf("got damage %v and moves %v, want one of each", o.Damaged, o.Moves)
	}
	if o.Collection == nil || o.Collection.Blobs != 7 {
		t.Errorf("the last collection is %+v, want the newest of all replicas", o.Collection)
	}
}

// A replica says that it is there, then that it stopped, and keeps its last collection over a restart. Others that ended
// long ago are forgotten.
func TestPresence(t *testing.T) {
	t.Parallel()
	w := setup()
	put(t, w.Replicas, "old", storage.Replica{Seen: w.now.Add(-48 * time.Hour)})
	put(t, w.Replicas, "a", storage.Replica{Seen: w.now, Collection: &storage.CollectionRun{Blobs: 3}})
	p := &operations.Presence{
		Name: "a", Replicas: w.Replicas, Clock: w, Every: time.Hour, Fault: func(err error) { t.Error(err) },
		Describe: func() storage.Replica { return storage.Replica{Host: "here", Version: "1"} },
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(ctx) }()
	for {
		if r, err := w.Replicas.Get(t.Context(), "a"); err != nil {
			t.Fatal(err)
		} else if r.Host == "here" {
			if r.Stopped || r.Lost(w.now) || !r.Lost(w.now.Add(time.Hour)) {
				t.Errorf("got %+v, want a replica that is there, and lost after an hour", r)
			}
			break
		}
	}
	for { // the first round is over when it forgot the old one; without an end, the test runs into its time limit
		if _, err := w.Replicas.Get(t.Context(), "old"); registry.HasCode(err, registry.CodeNotFound) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	p.Collected(storage.CollectionRun{Blobs: 4})
	cancel()
	<-ended
	r, err := w.Replicas.Get(t.Context(), "a")
	if err != nil || !r.Stopped || r.Collection == nil || r.Collection.Blobs != 4 || r.Lost(w.now.Add(time.Hour)) {
		t.Errorf("got %+v, error %v, want that it stopped, and its last collection", r, err)
	}
}

// A count that fails is an error of the answer, until one succeeds.
func TestCountFails(t *testing.T) {
	t.Parallel()
	w := setup()
	broken := errors.New("the database is gone")
	c := w.Config
	c.Store = failing{w.DB, &broken}
	g := operations.New(c)
	if err := g.Count(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the store", err)
	}
	if _, err := g.Gather(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the count", err)
	}
	broken = nil
	gather(t, g)
}

type failing struct {
	storage.GCStore
	err *error
}

func (f failing) Repositories(ctx context.Context) ([]string, error) {
	if *f.err != nil {
		return nil, *f.err
	}
	return f.GCStore.Repositories(ctx)
}
