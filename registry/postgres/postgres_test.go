package postgres_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/postgres"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

func open(t testing.TB, url string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// clocked is a database with a clock that a test moves.
func clocked[T any](t *testing.T) (T, func(time.Duration)) {
	t.Helper()
	url := pgtest.Database(t)
	db := open(t, url)
	store, ok := any(db).(T)
	if !ok {
		t.Fatalf("%T is not a %T", db, store)
	}
	return store, pgtest.Clock(t, url, registrytest.NewClock().Now())
}

func TestStore(t *testing.T) {
	t.Parallel()
	registrytest.TestStore(t, func(t *testing.T) registrytest.Store { return open(t, pgtest.Database(t)) })
}

func TestDeleter(t *testing.T) {
	t.Parallel()
	registrytest.TestDeleter(t, func(t *testing.T) registrytest.DeletableRefs { return open(t, pgtest.Database(t)) })
}

func TestIntents(t *testing.T) {
	t.Parallel()
	registrytest.TestIntents(t, clocked[registrytest.Store])
}

func TestUploadStates(t *testing.T) {
	t.Parallel()
	registrytest.TestUploadStates(t, clocked[storage.UploadStates])
}

func TestConfigurations(t *testing.T) {
	t.Parallel()
	registrytest.TestConfigurations(t, func(t *testing.T) registrytest.Configured { return open(t, pgtest.Database(t)) })
}

func TestTokens(t *testing.T) {
	t.Parallel()
	registrytest.TestTokens(t, func(t *testing.T) storage.Tokens { return open(t, pgtest.Database(t)) })
}

func TestSessions(t *testing.T) {
	t.Parallel()
	registrytest.TestSessions(t, func(t *testing.T) storage.Sessions { return open(t, pgtest.Database(t)) })
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	registrytest.TestSecrets(t, func(t *testing.T) storage.Secrets { return open(t, pgtest.Database(t)) })
}

func TestCollection(t *testing.T) {
	t.Parallel()
	registrytest.TestCollection(t, clocked[registrytest.Collectable])
}

func TestLeases(t *testing.T) {
	t.Parallel()
	registrytest.TestLeases(t, clocked[storage.Leases])
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	registrytest.TestIdempotency(t, clocked[storage.Idempotency])
}

func TestTables(t *testing.T) {
	t.Parallel()
	registrytest.TestTables(t, func(t *testing.T) registrytest.Tables {
		db := open(t, pgtest.Database(t))
		return registrytest.Tables{NodeTypes: db.NodeTypes(), Runtimes: db.Runtimes(), NodeReports: db.NodeReports()}
	})
}

// Pools of their own on one database are what replicas are to each other.
func TestPoolsRace(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	registrytest.Race(t, open(t, url), open(t, url))
}

// Several replicas may find an empty database and all make the schema.
func TestOpenRace(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	ids := make([]string, 4)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			db, err := postgres.Open(t.Context(), url)
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			ids[i] = db.ID()
			if _, err := db.Apply(t.Context(), change(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Errorf("identities %q, want one", ids)
		}
	}
}

// A pool of one connection is enough for everything.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.Database(t)+"?pool_max_conns=1")
	for n := range 3 {
		if _, err := db.Apply(t.Context(), change(fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range db.History(t.Context(), history.HistoryQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Heads(t.Context(), "", ""); err != nil {
			t.Fatal(err)
		}
	}
}

func TestResetDerived(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := open(t, pgtest.Database(t))
	subject := digest.FromString("subject")
	m := storage.Manifest{Digest: digest.FromString("m"), MediaType: "type", Size: 1}
	m.Derived = artifact.Derived{ArtifactType: "artifact", Subject: subject, Annotations: map[string]string{"a": "b"}}
	if err := db.PutManifest(ctx, "staging/a", m); err != nil {
		t.Fatal(err)
	}
	if err := db.SetTag(ctx, "staging/a", "1.0.0", m.Digest); err != nil {
		t.Fatal(err)
	}
	if err := db.ResetDerived(ctx); err != nil {
		t.Fatal(err)
	}
	bare, err := db.Manifest(ctx, "staging/a", m.Digest)
	if err != nil || bare.MediaType != "type" || bare.Size != 1 || bare.Derived.ArtifactType != "" {
		t.Errorf("after the reset: got %+v, %v; want the facts alone", bare, err)
	}
	if _, err := db.Tag(ctx, "staging/a", "1.0.0"); err != nil {
		t.Errorf("the tag is a fact: %v", err)
	}
	for rm, err := range db.AllManifests(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		rm.Manifest.Derived = m.Derived
		if err := db.PutManifest(ctx, rm.Repository, rm.Manifest); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := db.Referrers(ctx, "staging/a", subject, "artifact", ""); err != nil || len(got) != 1 {
		t.Errorf("after recording again: got %v, %v", got, err)
	}
}

// What PostgreSQL cannot hold is the caller's mistake, and nothing breaks by it.
func TestTextsThatCannotBeHeld(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := open(t, pgtest.Database(t))
	m := storage.Manifest{Digest: digest.FromString("m"), MediaType: "type"}
	event := func(model string) error {
		c := change("1.0.0")
		c.Event.Model = model
		_, err := db.Apply(ctx, c)
		return err
	}
	nul := storage.Manifest{Digest: m.Digest, MediaType: "a\x00b"}
	long := strings.Repeat("no compression makes this short: ", 1000)
	for name, err := range map[string]error{
		"NUL in a repository":     db.AddBlob(ctx, "a\x00b", m.Digest, 1),
		"no UTF-8 in a name":      db.AddBlob(ctx, "a\xffb", m.Digest, 1),
		"NUL in a media type":     db.PutManifest(ctx, "staging/a", nul),
		"NUL in a tag":            db.SetTag(ctx, "staging/a", "a\x00b", m.Digest),
		"NUL in a model":          event("a\x00b"),
		"quote in a model":        event(`a","model":"b`),
		"NUL in an intent":        db.Begin(ctx, history.Intent{Environment: "prod", Model: "\x00"}),
		"tag that is too long":    longTag(t, db, long),
		"NUL in what is asked of": secondError(db.Tag(ctx, "staging/a", "\x00")),
	} {
		if registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: got %v (%s), want %s", name, err, registry.CodeOf(err), registry.CodeInvalid)
		}
	}
	for e, err := range db.History(ctx, history.HistoryQuery{}) {
		t.Errorf("history has %v, %v; want nothing", e, err)
	}
}

func secondError[T any](_ T, err error) error { return err }

// longTag sets a tag that no index can hold.
func longTag(t *testing.T, db *postgres.DB, pattern string) error {
	t.Helper()
	var tag strings.Builder
	for n := range 2000 { // what repeats itself would be compressed
		tag.WriteString(digest.FromString(fmt.Sprint(pattern, n)).Encoded())
	}
	c := change("1.0.0")
	c.Tags = []storage.TagMove{{Repository: "prod/a", Tag: tag.String(), Digest: c.Event.Release}}
	return secondError(db.Apply(t.Context(), c))
}

func change(release string) storage.Change {
	return storage.Change{
		Event: history.Event{
			Time: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Kind: history.EventPublish,
			Environment: "prod", Model: "a", Version: release, Release: digest.FromString(release),
		},
	}
}

// BenchmarkApply makes commits, each of tags, head and history. The server does not sync
// to disk, so this is what everything else costs.
func BenchmarkApply(b *testing.B) {
	db := open(b, pgtest.Database(b))
	var head registry.Digest
	for n := 0; b.Loop(); n++ {
		c := change(fmt.Sprint(n))
		c.DecisionBasis, c.Move = registrytest.HeadAlone("prod", "a", head), &storage.HeadMove{}
		c.Tags = []storage.TagMove{{Repository: "prod/a", Tag: artifact.HeadTag, Digest: c.Event.Release}}
		event, err := db.Apply(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		head = event.Release
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	registrytest.TestIdentity(t, func(t *testing.T) func() registrytest.Identified {
		url := pgtest.Database(t)
		return func() registrytest.Identified { return open(t, url) }
	})
}
