package postgres

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// during begins what waits for a transaction that first has changed something, and lets
// the transaction go on when it does wait.
func during(t *testing.T, db *DB, first, rest func(context.Context, *dbsqlc.Queries) error, waits func()) {
	t.Helper()
	var done sync.WaitGroup
	defer done.Wait()
	err := db.transaction(t.Context(), func(ctx context.Context, q *dbsqlc.Queries) error {
		if err := first(ctx, q); err != nil {
			return err
		}
		done.Go(waits)
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			var waiting bool
			err := db.pool.QueryRow(ctx,
				`SELECT EXISTS (SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname = current_database())`).Scan(&waiting)
			if err != nil {
				return err
			}
			if waiting {
				return rest(ctx, q)
			}
			if time.Now().After(deadline) {
				t.Error("nobody waits for the transaction")
				return nil
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// Of replicas that find an empty database, those that come second wait.
func TestOpenWaitsForMigration(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	config, err := parse(url)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	bare := &DB{pool: pool, patience: patience}
	during(t, bare, func(ctx context.Context, q *dbsqlc.Queries) error { return q.MigrationLock(ctx) },
		func(ctx context.Context, _ *dbsqlc.Queries) error { return bare.up(ctx) },
		func() {
			db, err := Open(t.Context(), url)
			if err != nil {
				t.Error(err)
				return
			}
			_ = db.Close()
		})
}

const repository, named = "staging/a", registry.Digest("sha256:m")

func recorded(t *testing.T, db *DB) {
	t.Helper()
	m := storage.Manifest{Digest: named, MediaType: "type", Derived: artifact.Derived{Subject: "sha256:s"}}
	if err := db.PutManifest(t.Context(), repository, m); err != nil {
		t.Fatal(err)
	}
}

// A tag is never set to a manifest that somebody deletes at the same time.
func TestTagOfWhatIsDeleted(t *testing.T) {
	t.Parallel()
	db, _ := openTest(t)
	recorded(t, db)
	during(t, db, func(ctx context.Context, q *dbsqlc.Queries) error {
		_, err := q.ManifestDelete(ctx, dbsqlc.ManifestDeleteParams{Repository: repository, Digest: string(named)})
		return err
	}, func(ctx context.Context, q *dbsqlc.Queries) error {
		return q.TagDeleteAll(ctx, dbsqlc.TagDeleteAllParams{Repository: repository, Digest: string(named)})
	}, func() {
		if err := db.SetTag(t.Context(), repository, "1.0.0", named); registry.CodeOf(err) != registry.CodeNotFound {
			t.Errorf("got %v (%s), want %s", err, registry.CodeOf(err), registry.CodeNotFound)
		}
	})
	if d, err := db.Tag(t.Context(), repository, "1.0.0"); err == nil {
		t.Errorf("a tag names %s, which is not recorded", d)
	}
}

// Whoever deletes a manifest while a tag is set to it takes the tag too.
func TestDeletionOfWhatIsTagged(t *testing.T) {
	t.Parallel()
	db, _ := openTest(t)
	recorded(t, db)
	during(t, db, func(ctx context.Context, q *dbsqlc.Queries) error {
		_, err := q.TagSetRecorded(ctx, dbsqlc.TagSetRecordedParams{Repository: repository, Tag: "1.0.0", Digest: string(named)})
		return err
	}, func(context.Context, *dbsqlc.Queries) error { return nil }, func() {
		if err := db.DeleteManifest(t.Context(), repository, named); err != nil {
			t.Error(err)
		}
	})
	if d, err := db.Tag(t.Context(), repository, "1.0.0"); err == nil {
		t.Errorf("a tag names %s, which is not recorded", d)
	}
}

// Whoever deletes a manifest while it is recorded again takes all of it or nothing.
func TestDeletionOfWhatIsRecordedAgain(t *testing.T) {
	t.Parallel()
	db, _ := openTest(t)
	recorded(t, db)
	during(t, db, func(ctx context.Context, q *dbsqlc.Queries) error {
		return q.ManifestAdd(ctx, dbsqlc.ManifestAddParams{Repository: repository, Digest: string(named), MediaType: "type"})
	}, func(ctx context.Context, q *dbsqlc.Queries) error {
		return q.DerivedSet(ctx, dbsqlc.DerivedSetParams{Repository: repository, Digest: string(named), Subject: "sha256:s"})
	}, func() {
		if err := db.DeleteManifest(t.Context(), repository, named); err != nil {
			t.Error(err)
		}
	})
	var left int
	if err := db.pool.QueryRow(t.Context(),
		`SELECT (SELECT count(*) FROM manifests) + (SELECT count(*) FROM manifest_derived)`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows are left (%v)", left, err)
	}
}

// A writer that adds a blob to a repository while its removal begins learns of the removal.
func TestMembershipOfWhatIsRemoved(t *testing.T) {
	t.Parallel()
	db, _ := openTest(t)
	const d = registry.Digest("sha256:b")
	if err := db.Mark(t.Context(), time.Now(), []registry.Digest{d}); err != nil {
		t.Fatal(err)
	}
	during(t, db, func(ctx context.Context, q *dbsqlc.Queries) error {
		return q.CollectionLock(ctx)
	}, func(ctx context.Context, q *dbsqlc.Queries) error {
		begun, err := q.RemovalBegin(ctx, dbsqlc.RemovalBeginParams{
			Removal: "one", Lasting: time.Minute.Microseconds(), Digests: []string{string(d)}, Before: time.Now(),
		})
		if len(begun) != 1 {
			t.Errorf("the removal of %v began, want that of the blob", begun)
		}
		return err
	}, func() {
		if err := db.AddBlob(t.Context(), repository, d, 1); err != nil {
			t.Error(err)
		}
		if removal, err := db.Unmark(t.Context(), d); err != nil || removal.ID != "one" || removal.Left <= 0 {
			t.Errorf("got %+v, %v; want the removal", removal, err)
		}
	})
}

// A tag that must not move and that somebody else sets at the same time has not moved.
func TestImmutableTagOfTwo(t *testing.T) {
	t.Parallel()
	db, _ := openTest(t)
	recorded(t, db)
	c := publication("1.0.0")
	c.Tags = []storage.TagMove{{Repository: repository, Tag: "1.0.0", Digest: "sha256:other", Immutable: true}}
	during(t, db, func(ctx context.Context, q *dbsqlc.Queries) error {
		_, err := q.TagSetRecorded(ctx, dbsqlc.TagSetRecordedParams{Repository: repository, Tag: "1.0.0", Digest: string(named)})
		return err
	}, func(context.Context, *dbsqlc.Queries) error { return nil }, func() {
		if _, err := db.Apply(t.Context(), c); registry.CodeOf(err) != registry.CodeConflict {
			t.Errorf("got %v (%s), want %s", err, registry.CodeOf(err), registry.CodeConflict)
		}
	})
	if d, err := db.Tag(t.Context(), repository, "1.0.0"); err != nil || d != named {
		t.Errorf("the tag names %s (%v), want %s", d, err, named)
	}
}

// Readers, pushes and tags go on while somebody appends to the history.
func TestHistoryKeepsNobodyElse(t *testing.T) {
	t.Parallel()
	db, _ := openTest(t)
	recorded(t, db)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := db.transaction(ctx, func(_ context.Context, q *dbsqlc.Queries) error {
		if _, err := apply(ctx, q, publication("1.0.0")); err != nil {
			return err
		}
		for name, err := range map[string]error{
			"tag":      db.SetTag(ctx, repository, "current", named),
			"manifest": db.PutManifest(ctx, repository, storage.Manifest{Digest: "sha256:n"}),
			"blob":     db.AddBlob(ctx, repository, "sha256:b", 1),
			"intent":   db.Begin(ctx, history.Intent{Environment: "prod", Model: "a"}),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for event, err := range db.History(ctx, history.HistoryQuery{}) {
			t.Errorf("history has %v (%v) before the commit", event, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
