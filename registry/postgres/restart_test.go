package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/postgres"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// restartSeed makes the instants of TestRestartUnderLoad the same in every run.
const restartSeed = 20260101

// TestRestartUnderLoad stops the server under replicas that write, by request of an
// administrator or as if it crashed, and starts it again. What was acknowledged is there,
// the history is whole, and no error is other than "not now". MLPROMOTE_SOAK does it more
// often.
func TestRestartUnderLoad(t *testing.T) {
	t.Parallel()
	restarts := 2
	if os.Getenv("MLPROMOTE_SOAK") != "" {
		restarts = 100
	}
	server := pgtest.New(t)
	url := server.Database(t)
	l := &load{t: t, manifests: make(map[registry.Digest]string), heads: make(map[string]registry.Digest)}
	var writers sync.WaitGroup
	for n := range 4 {
		db := open(t, url) // every writer is a replica
		writers.Go(func() { l.write(db, n) })
	}
	random := rand.New(rand.NewPCG(restartSeed, 0))
	for n := range restarts {
		l.await(10 + random.Int64N(40))
		server.Stop(t, []string{"fast", "immediate"}[n%2])
		server.Start(t)
	}
	l.await(20)
	l.over.Store(true)
	writers.Wait()
	l.check(open(t, url))
	t.Logf("acknowledged %d changes, refused %d", l.acknowledged.Load(), l.refused.Load())
	if l.refused.Load() == 0 {
		t.Error("nothing was refused: the test tests nothing")
	}
}

// load is what writers were told.
type load struct {
	t                     *testing.T
	over                  atomic.Bool
	acknowledged, refused atomic.Int64

	mu        sync.Mutex
	events    []history.Event
	manifests map[registry.Digest]string // repository by digest
	heads     map[string]registry.Digest // by model
}

// await waits until n more changes were acknowledged.
func (l *load) await(n int64) {
	l.t.Helper()
	until := l.acknowledged.Load() + n
	for deadline := time.Now().Add(time.Minute); l.acknowledged.Load() < until; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) || l.t.Failed() {
			l.over.Store(true)
			l.t.Fatalf("%d changes were acknowledged, %d refused; waiting for %d", l.acknowledged.Load(), l.refused.Load(), until)
		}
	}
}

// write makes changes until it is over, each as often as it takes.
func (l *load) write(db *postgres.DB, writer int) {
	var head registry.Digest
	model := fmt.Sprint("model", writer)
	for n := 0; !l.over.Load(); n++ {
		c := change(fmt.Sprintf("%d.%d.0", writer, n))
		c.Event.Model = model
		c.DecisionBasis, c.Move = registrytest.HeadAlone("prod", model, head), &storage.HeadMove{}
		m := storage.Manifest{Digest: c.Event.Release, MediaType: "type"}
		l.insist(func() error { return db.PutManifest(l.t.Context(), "prod/"+model, m) })
		var event history.Event
		l.insist(func() (err error) {
			event, err = db.Apply(l.t.Context(), c)
			return err
		})
		head = event.Release
		l.mu.Lock()
		l.events, l.manifests[m.Digest], l.heads[model] = append(l.events, event), "prod/"+model, head
		l.mu.Unlock()
	}
}

// insist tries until it succeeds.
func (l *load) insist(try func() error) {
	for ; ; time.Sleep(time.Millisecond) {
		err := try()
		if err == nil {
			l.acknowledged.Add(1)
			return
		}
		if registry.CodeOf(err) != registry.CodeUnavailable {
			l.t.Errorf("got %v (%s), want %s", err, registry.CodeOf(err), registry.CodeUnavailable)
			l.over.Store(true)
			return
		}
		l.refused.Add(1)
	}
}

// check wants all that was acknowledged, and an unbroken history.
func (l *load) check(db *postgres.DB) {
	l.t.Helper()
	events := make(map[registry.Digest]bool)
	var last history.Event
	for event, err := range db.History(l.t.Context(), history.HistoryQuery{}) {
		if err != nil {
			l.t.Fatal(err)
		}
		if err := event.VerifyChain(last); err != nil {
			l.t.Error(err)
		}
		events[event.Hash], last = true, event
	}
	if len(events) != len(l.events) {
		l.t.Errorf("history has %d events, %d were acknowledged", len(events), len(l.events))
	}
	for _, event := range l.events {
		if !events[event.Hash] {
			l.t.Errorf("history lost %+v", event)
		}
	}
	for d, repository := range l.manifests {
		if _, err := db.Manifest(l.t.Context(), repository, d); err != nil {
			l.t.Error(err)
		}
	}
	for model, release := range l.heads {
		if head, err := db.Head(l.t.Context(), "prod", model); err != nil || head.Release != release {
			l.t.Errorf("the head of %s is %v (%v), %s was acknowledged", model, head, err, release)
		}
	}
}
